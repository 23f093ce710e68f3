# SPDX-License-Identifier: MIT
"""Arrays of C, in lines of 96 columns, for the scripts that make the vectors beside it."""


def floats(values):
    """Nine digits hold a float; what is too small for one is zero."""
    texts = (f"{v if abs(v) > 1.2e-38 else 0.0:.9g}" for v in values)
    return [v + ("f" if "." in v or "e" in v else ".0f") for v in texts]


def c_array(kind, name, values):
    lines, line = [], "   "
    for value in values:
        if len(line) + len(value) + 2 > 96:
            lines.append(line)
            line = "   "
        line += f" {value},"
    return f"static const {kind} {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};\n"

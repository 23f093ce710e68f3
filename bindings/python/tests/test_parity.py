# SPDX-License-Identifier: MIT
"""An image model that torch made, with the definitions and with the authors' library, is the same
model here."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import authors  # noqa: E402
import tarn  # noqa: E402

IMAGES, BYTES = 3, 49
SIZES = dict(symbols=256, length=BYTES - 1, mixtures=10, layers=2, width=32, heads=4, feed=64)


@pytest.mark.parametrize("kind", ["linear", "softmax"])
@pytest.mark.parametrize("encoder", [authors.Encoder, authors.LibraryEncoder])
def test_an_image_model_has_the_authors_bits(encoder, kind, tmp_path):
    torch.manual_seed(4)
    try:
        model = authors.shake(authors.Image(encoder=encoder, kind=kind, **SIZES))
    except ImportError as error:
        pytest.skip(str(error))
    images = torch.randint(0, 256, (IMAGES, BYTES))
    path = tmp_path / "image.pth"
    torch.save({"model_state": model.state_dict()}, path, _use_new_zipfile_serialization=False)
    ours = tarn.Model.import_(path, heads=SIZES["heads"], attention=kind)
    whole = ours.forward(images[:, :-1].numpy())
    with torch.no_grad():
        wanted = model(images[:, :-1])
        bits = authors.bits_per_dim(model, images).item()
    np.testing.assert_allclose(whole, wanted, rtol=0, atol=2e-5)
    assert authors.bits_per_dim(lambda _: torch.from_numpy(whole), images) == pytest.approx(
        bits, abs=1e-4)
    ours.export(tmp_path / "image.npz", positions=SIZES["length"])
    with np.load(tmp_path / "image.npz") as file:
        model.load_state_dict({name: torch.from_numpy(file[name]) for name in file.files
                               if not name.endswith(".json")})
    state = ours.state(IMAGES, longest=BYTES)
    for i in range(BYTES - 1):
        np.testing.assert_allclose(ours.step(state, images[:, i].numpy()), wanted[:, i], rtol=0,
                                   atol=2e-5)

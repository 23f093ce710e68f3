#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a corpus of synthetic speech, spoken by flite and espeak-ng, with phones.

    tools/make_speech.py --out DIR [--utterances N] [--test N] [--seed S] [--text FILE] ...

writes DIR/train.tsv, DIR/test.tsv and their audio files. The test part has other sentences, and other
voices unless --same-voices is given. Sentences come from a small grammar or from a text; --words
speaks single words instead. Phones are the 39 of ARPAbet: flite prints them, those of espeak-ng are
translated. The same seed and versions of the tools give the same corpus.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import wave

HERE = pathlib.Path(__file__).resolve().parent

# ---- Sentences ------------------------------------------------------------------

WORDS = {
    "the": "the a this that every another our their my your his her",
    "adjective": """old young quiet loud yellow purple orange narrow wide gentle strange hungry
        thirsty usual modern ancient broken frozen joyful royal careful cheerful golden silver
        thick thin smooth rough heavy shallow northern southern foolish clever curious""",
    "noun": """boy girl teacher doctor sailor farmer judge child mother father brother neighbour
        soldier painter baker pilot queen prince dog horse bird fish mouse sheep cow tiger
        garden river mountain forest village kitchen bridge church theatre treasure journey voyage
        machine engine window table chair basket bottle candle mirror button jacket leather
        measure television garage vision choice noise voice coin toy oil cloud thunder earth
        breath path youth thought thing ring song king spring morning evening""",
    "verb": """watches follows carries measures finds joins brings teaches pushes catches
        chooses enjoys destroys touches remembers forgets paints washes breaks moves holds throws
        changes reaches answers thanks loves hears judges joins feeds""",
    "verb0": """sleeps laughs arrives vanishes falls waits sings works dances listens travels
        returns coughs shouts smiles agrees begins thinks""",
    "adverb": """slowly quickly quietly loudly often never always usually together yesterday
        again outside upstairs gladly early late""",
    "preposition": "under over behind beside near with without through toward above against",
    "number": "two three four five six seven eight nine ten eleven twelve twenty thirty",
    "plural": """boys girls houses horses birds books shoes trees wishes churches judges peaches
        watches roads clouds fathers brothers voices choices engines pictures measures""",
    "question": "why when where how",
    "can": "can could should would will must might",
    "do": """watch follow carry measure find join bring teach push catch choose enjoy
        destroy touch remember paint wash move hold throw change reach answer thank hear""",
    "who": "he she they we you nobody somebody everyone",
}
RULES = [
    "the adjective noun verb the noun",
    "the noun verb0 adverb preposition the adjective noun",
    "number adjective plural preposition the noun",
    "who can do the adjective noun",
    "who can never do number plural",
    "question can the noun do the plural",
    "adverb the noun verb number plural preposition the noun",
    "the noun preposition the noun verb0 and the adjective noun verb the plural",
    "who can do the noun because the noun verb0",
    "if the noun verb0 who can do number adjective plural",
]


def grammar(chance):
    rule = chance.choice(RULES).split()
    return " ".join(chance.choice(WORDS[w].split()) if w in WORDS else w for w in rule)


def sentences_of_text(path):
    """Lines and sentences of 2 to 20 words of letters only, which have one pronunciation."""
    text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    found = {}
    for piece in re.split(r"[.!?;:\n]+", text):
        piece = re.sub(r"[\s,\"()\[\]-]+", " ", piece.replace("\u2019", "'")).strip().lower()
        if re.fullmatch(r"[a-z]+('[a-z]+)*( [a-z]+('[a-z]+)*){1,19}", piece):
            found[piece] = None
    return list(found)


def draw_sentences(count, chance, text, words):
    """`count` different sentences in random order, or `count` of the words."""
    if words:
        return [chance.choice(words) for _ in range(count)]
    if text:
        found = sentences_of_text(text)
        if len(found) < count:
            stop(f"{text}: has {len(found)} usable sentences; {count} are needed")
        chance.shuffle(found)
        return found[:count]
    found = {}
    while len(found) < count:
        found[grammar(chance)] = None
    return list(found)


# ---- Voices ---------------------------------------------------------------------

FLITE = ["slt", "rms", "awb", "kal16"]
ESPEAK = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "f1", "f2", "f3", "f4", "f5", "Alex", "Andy",
          "Annie", "Gene", "Lee", "linda", "Michael", "Denis"]

# espeak-ng's names for the sounds of American English.
ARPABET = """@ AH|@2 AH|@5 AH|a# AH|V AH|3 ER|3: ER|a AE|aa AE|A: AA|A@ AA R|0 AA|0# AA|O: AO|O AO
|O2 AO|O@ AO R|o@ AO R|E EH|E2 EH|e@ EH R|I IH|I2 IH|I# IH|i IY|i: IY|i@ IH R|i@3 IH R|aI AY
|aI@ AY AH|aI3 AY ER|aU AW|aU@ AW ER|eI EY|OI OY|oU OW|U UH|u: UW|u UW|U@ UH R|@L AH L|n- AH N
|@- AH|p P|b B|t T|t# T|t2 T|? T|d D|k K|g G|f F|v V|s S|z Z|m M|n N|l L|w W|h HH|T TH|D DH|S SH
|Z ZH|tS CH|dZ JH|N NG|r R|r- R|j Y"""
ARPABET = {row.split()[0]: row.split()[1:] for row in ARPABET.replace("\n", "").split("|")}


class Unspeakable(Exception):
    pass


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        stop(f"{command[0]}: failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def speak_flite(voice, sentence, path, chance):
    pitch = {"slt": 175, "rms": 100, "awb": 130, "kal16": 110}[voice] * chance.uniform(0.85, 1.2)
    stretch = chance.uniform(0.85, 1.2)
    out = run("flite", "-voice", voice, "--setf", f"duration_stretch={stretch:.3f}", "--setf",
              f"int_f0_target_mean={pitch:.1f}", "-psdur", "-t", sentence, "-o", path)
    phones = [word.split(":")[0] for word in out.split()]
    return ["AH" if p == "ax" else p.upper() for p in phones if p != "pau"]


def speak_espeak(voice, sentence, path, chance):
    out = run("espeak-ng", "-v", f"en-us+{voice}", "-s", str(chance.randint(130, 190)),
              "-p", str(chance.randint(30, 70)), "-x", "--sep=_", "-w", path, sentence)
    phones = []
    for name in re.split(r"[_\s]+", out):
        name = name.lstrip("',%=!")
        if name in ("", ":", ";", "|", "||"):
            continue
        if name not in ARPABET:
            raise Unspeakable(f"'{name}' in '{sentence}'")
        for phone in ARPABET[name]:
            if not (phone == "R" and phones[-1:] in (["R"], ["ER"])):
                phones.append(phone)
    return phones


TOOLS = {"flite": (FLITE, speak_flite), "espeak-ng": (ESPEAK, speak_espeak)}
PHONES = set("""AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH
    UH UW V W Y Z ZH""".split())


def choose_voices(tools, chance, same):
    """(training, test): a quarter of the voices of each tool, at least one, is only in the test; or
    all are in both."""
    parts = ([], [])
    if same:
        voices = [(tool, voice) for tool in tools for voice in TOOLS[tool][0]]
        return voices, voices
    for tool in tools:
        voices = list(TOOLS[tool][0])
        chance.shuffle(voices)
        held_out = max(1, len(voices) // 4)
        parts[0].extend((tool, voice) for voice in voices[held_out:])
        parts[1].extend((tool, voice) for voice in voices[:held_out])
    return parts


# ---- The corpus -----------------------------------------------------------------

def stop(text):
    print(f"make_speech: {text}", file=sys.stderr)
    sys.exit(1)


def speak(task):
    """A line of the table; None if the tool spoke a sound that has no phone."""
    out, name, (tool, voice), sentence, seed = task
    chance = random.Random(seed)
    path = out / name
    try:
        phones = TOOLS[tool][1](voice, sentence, str(path), chance)
    except Unspeakable as reason:
        print(f"make_speech: {tool}: sound without a phone: {reason}; skipped",
              file=sys.stderr)
        path.unlink(missing_ok=True)
        return None
    if not set(phones) <= PHONES:
        stop(f"{tool}: unknown phones {sorted(set(phones) - PHONES)} in '{sentence}'")
    with wave.open(str(path)) as sound:
        seconds = sound.getnframes() / sound.getframerate()
    return "\t".join([name, f"{seconds:.2f}", f"{tool}-{voice}", " ".join(phones),
                      sentence.upper()])


def make_part(out, part, sentences, voices, seed, jobs):
    (out / part).mkdir(parents=True, exist_ok=True)
    tasks = [(out, f"{part}/{i:06d}.wav", voices[i % len(voices)], sentence, f"{seed} {part} {i}")
             for i, sentence in enumerate(sentences)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        rows = [row for row in pool.map(speak, tasks) if row]
    temporary = out / f"{part}.tsv.tmp"
    temporary.write_text("audio\tseconds\tspeaker\tphones\ttext\n" + "\n".join(rows) + "\n",
                         encoding="utf-8")
    os.replace(temporary, out / f"{part}.tsv")
    seconds = sum(float(row.split("\t")[1]) for row in rows)
    print(f"{part}: {len(rows)} utterances, {seconds / 60:.1f} minutes, {len(voices)} voices")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", required=True, metavar="DIR", help="output folder")
    parser.add_argument("--utterances", type=int, default=1000, metavar="N",
                        help="training utterances [1000]")
    parser.add_argument("--test", type=int, metavar="N", help="test utterances [a fifth of --utterances]")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed [0]")
    parser.add_argument("--text", metavar="FILE", help="text in UTF-8 to take the sentences from")
    parser.add_argument("--words", type=lambda words: words.lower().split(","), metavar="WORDS",
                        help="single words to speak instead of sentences, such as zero,one,two")
    parser.add_argument("--tools", default="flite,espeak-ng", metavar="NAMES",
                        help="flite, espeak-ng or both [those installed]")
    parser.add_argument("--same-voices", action="store_true",
                        help="use all voices for training and test")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="parallel jobs [number of processors]")
    parser.add_argument("--no-setup", action="store_true", help="do not install missing packages")
    options = parser.parse_args()
    if options.test is None:
        options.test = max(1, options.utterances // 5)
    if options.utterances < 1 or options.test < 1 or options.jobs < 1:
        parser.error("--utterances, --test and --jobs must be at least 1")
    options.tools = options.tools.split(",")
    for tool in options.tools:
        if tool not in TOOLS:
            parser.error(f"--tools: unknown name '{tool}'; available: {', '.join(TOOLS)}")
    return options


def main():
    options = arguments()
    out = pathlib.Path(options.out)
    if (out / "train.tsv").exists() or (out / "test.tsv").exists():
        stop(f"{out}: already contains a corpus; choose another --out")
    if not options.no_setup:
        subprocess.run([HERE / "setup.sh", "speech"], check=False)
    tools = [tool for tool in options.tools if shutil.which(tool)]
    if not tools:
        stop(f"{' or '.join(options.tools)}: not installed; run tools/setup.sh speech")
    if options.text and not pathlib.Path(options.text).is_file():
        stop(f"{options.text}: no such file")
    chance = random.Random(options.seed)
    training, test = choose_voices(tools, chance, options.same_voices)
    sentences = draw_sentences(options.utterances + options.test, chance, options.text,
                               options.words)
    make_part(out, "train", sentences[:options.utterances], training, options.seed, options.jobs)
    make_part(out, "test", sentences[options.utterances:], test, options.seed, options.jobs)


if __name__ == "__main__":
    main()

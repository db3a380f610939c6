# SPDX-License-Identifier: MIT
"""Texts for the benchmarks: a vocabulary with few common and many rare words, and notes made of it, the same in every run."""
import itertools
import os
import random

SYLLABLES = "ka lo mi ne ru ta vo se pi dan gor lum bre stal qui fen tor ash eld wy".split()
RARE = "zanzibar quetzal"
FOLDERS = ["", "projects/", "projects/alpha/", "daily/2026/", "reference/"]


def make_vocabulary(rng):
    """The words, and the sums of their weights for rng.choices()."""
    vocabulary = ["".join(rng.choices(SYLLABLES, k=rng.randrange(2, 5))) for _ in range(8000)]
    return vocabulary, list(itertools.accumulate(1 / (rank + 5) for rank in range(len(vocabulary))))


def make_notes(folder, count):
    """Notes of people's size: about 2 KB, front matter, headings, links, a vocabulary with few common and many rare words."""
    rng = random.Random(1)
    vocabulary, sums = make_vocabulary(rng)
    for number in range(count):
        words = rng.choices(vocabulary, cum_weights=sums, k=rng.randrange(120, 480))
        if number % 500 == 7:
            words.insert(len(words) // 2, RARE)
        lines = [" ".join(words[i:i + 12]) for i in range(0, len(words), 12)]
        lines[len(lines) // 2:len(lines) // 2] = ["", f"## {' '.join(rng.choices(vocabulary, cum_weights=sums, k=3)).title()}", ""]
        path = os.path.join(folder, FOLDERS[number % len(FOLDERS)] + f"note-{number:05}.md")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(f"---\ntitle: {' '.join(words[:4]).title()}\ntags: [t{number % 20}]\nstatus: "
                       f"{('open', 'done')[number % 2]}\n---\n" + "\n".join(lines) +
                       f"\n\nSee [other](note-{(number * 7) % count:05}.md).\n")
    return vocabulary


def make_linked_notes(folder, count, links, folders):
    """Notes in as many folders d0, d1 ... that link each other: by name, by path, and as Markdown."""
    rng = random.Random(1)
    for number in range(count):
        lines = [f"# N {number}", ""]
        for link in range(links):
            to = rng.randrange(count)
            place = f"d{to % folders}/n{to}"
            lines.append((f"A word and [[n{to}]] in it.", f"[[{place}|another name]]", f"[x](../{place}.md#h)")[link % 3])
        path = os.path.join(folder, f"d{number % folders}", f"n{number}.md")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree works anywhere: it names no package registry's host and no path of one machine.

Package clients know their registries from their own settings. Temporary files come from mktemp and
the like. (One letter of each pattern stands in brackets, so that this file does not find itself.)
"""

import re

from tree import Finding, files, run, text

PATTERNS = {
    "a package registry's host": re.compile(
        r"\b(pyp[i]\.org|pythonhoste[d]\.org|anacond[a]\.(org|com)|npmj[s]\.(org|com)"
        r"|crate[s]\.io|docke[r]\.io|ghc[r]\.io|qua[y]\.io|gc[r]\.io|rubygem[s]\.org"
        r"|prox[y]\.golang\.org|(de[b]|security|snapshot|ft[p][.\w]*|httpredi[r])\.debian\.org"
        r"|archiv[e]\.ubuntu\.com|developer\.downloa[d]\.nvidia\.com|downloa[d]\.pytorch\.org)"),
    "an index given by hand": re.compile(r"--(extra-)?inde[x]-url"),
    "a path of one machine": re.compile(
        r"(?<![\w.$}])/(wor[k]|far[m]|hom[e]/[a-z]\w*|roo[t]|tm[p]/bash_jobs|User[s])/"),
    "an address of one network": re.compile(
        r"\b(1[0]\.\d{1,3}|192\.16[8]|172\.(1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b"),
}


def check(root):
    findings = []
    for relative, path in files(root):
        for number, line in enumerate((text(path) or "").splitlines(), 1):
            for what, pattern in PATTERNS.items():
                match = pattern.search(line)
                if match:
                    findings.append(Finding(relative, number, f"{what}: {match.group(0)}"))
    return findings


if __name__ == "__main__":
    run(check, __doc__)

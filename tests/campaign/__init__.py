"""A campaign of damaged files, bit flips, kills, full disks and absurd options: ``python -m tests.campaign --help``.

A case is drawn from a seed and a number alone, so that ``--case KIND-NUMBER`` repeats it.  It holds if cognn refuses
with one line and exit code 1 or 2, or if its answer is right by an oracle that shares no code with cognn.
``case.py`` says what a case is, ``sound.py`` makes the undamaged files, ``plain.py`` reads tables without cognn, and
every other file is one family of cases.
"""

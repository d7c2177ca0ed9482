"""Commands for operators and the set-up, each run by itself: backups, the state directory, jars."""

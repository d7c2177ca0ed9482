"""The servers of one service: who they are, who lives, and which of them leads."""

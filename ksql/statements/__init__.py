"""What each statement does and answers, one handler each."""

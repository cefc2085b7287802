"""Programs that die at any instant: nothing is done twice, and every caller gets an answer in time."""

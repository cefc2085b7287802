"""Rehearsals: plans, the stage, the interception, the judge and the command."""

"""
What SDKs and agent frameworks do about failures: plain, with amends, and behind the gateway (`make rehearsals`).

`programs` has one small agent for each; `__main__` rehearses them and writes the table of docs/rehearsals.md.
"""

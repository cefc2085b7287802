"""
The demo of `amends try`: plain clients, tenacity and amends do the same job, and meet the same failures.

    agents        the three agents, and their job
    comparison    rehearses the agents (`amends.rehearse`) one after the other
    view          shows the comparison on a terminal
    page          the live page of `--page`

    services, scenario, call_record    small services with and without amends, which `make audits` scores
    host          serves an application on loopback
"""

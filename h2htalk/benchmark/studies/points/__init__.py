"""Answer what points say of replies: by code, a judge or people; and make observations of the answers.

Replies of a study come in, `Observation`s go out. Read `point_answers.py` first. `phone_numbers.py` finds numbers in a
reply, `judge_requests.py` asks a judge about open points, and `observe.py` gives every value of a study.
"""

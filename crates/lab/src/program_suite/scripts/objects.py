# Objects into JSON and back, several times: dictionaries, lists, strings and numbers that live and die together.
import json
with open("objects.json") as file:
    text = file.read()
total = 0
for step in range(4):
    objects = json.loads(text)
    for one in objects[::3]:
        one["values"] = [value * 2 for value in one["values"]]
        one["tags"]["step"] = str(step) * 8
    text = json.dumps(objects)
    total += len(text)
print(total)

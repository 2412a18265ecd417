# Words of a large text: split, counted, grouped and sorted by four threads.
import threading, collections
with open("words.txt") as file:
    lines = file.read().splitlines()
results = [None] * 4
def work(part):
    counts, groups = collections.Counter(), collections.defaultdict(list)
    for line in lines[part::4]:
        for word in line.split():
            counts[word] += 1
            groups[word[:2]].append(word.upper())
    results[part] = (sum(counts.values()), sum(len(" ".join(sorted(group))) for group in groups.values()))
threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results)

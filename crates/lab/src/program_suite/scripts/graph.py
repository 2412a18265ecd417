# A graph of small objects that refer to each other, taken apart and rebuilt at random: the cycle collector frees most of them.
import random
random.seed(7)
class Node:
    __slots__ = ("name", "edges", "data")
    def __init__(self, name):
        self.name, self.edges, self.data = "node %d" % name, [], bytearray(name % 200)
nodes = [Node(name) for name in range(30000)]
total = 0
for step in range(4):
    for node in nodes:
        node.edges = [nodes[random.randrange(len(nodes))] for _ in range(3)]
    for place in range(step, len(nodes), 2):
        nodes[place] = Node(place + step)
    total += sum(len(node.data) for node in nodes)
print(total)

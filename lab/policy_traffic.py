"""UDP between pods, sent and answered by one process, and what became of each packet."""
import errno, os, select, socket, threading, time

from policy_lab import new_socket

ANSWER = 10  # seconds after which an answer counts as lost


def late():
    """Seconds that the slowest answer may take: three, and longer by the load of each processor. Policies drop and do not delay: a
    late answer waited in a queue of the userspace datapath, and waits longer on a busy machine. A longer delay means that the path
    was closed and opened again."""
    return min(ANSWER, 3 * (1 + max(os.getloadavg()) / os.cpu_count()))


class Flow:
    """UDP from a pod to a port of another one. Each datagram says which flow it is of, and its number."""

    def __init__(self, number, name, source, target, port, rate, allowed, old=False):
        self.number, self.name, self.source, self.target, self.port = number, name, source, target, port
        self.every, self.allowed, self.due, self.sent = 1 / rate, allowed, 0, 0
        self.arrived, self.waiting, self.lost, self.slowest = [], {}, [], 0
        self.socket = self.made() if old else None

    def made(self):
        with self.source.space:
            return new_socket(self.source.address, socket.SOCK_DGRAM)


class End:
    def __init__(self, address, space):
        self.address, self.space = address, space


class Traffic(threading.Thread):
    """Sends all flows and answers them, until it is told to end."""

    def __init__(self, flows, patience=ANSWER):
        super().__init__(daemon=True)
        self.flows, self.patience, self.poll, self.over = flows, patience, select.epoll(), threading.Event()
        self.servers, self.clients, self.new = {}, {}, []
        for target, port in {(flow.target, flow.port) for flow in flows}:
            with target.space:
                made = new_socket(target.address, socket.SOCK_DGRAM, port)
            self.servers[made.fileno()] = made
            self.poll.register(made, select.EPOLLIN)
        for flow in flows:
            if flow.socket:
                self.listen(flow, flow.socket)

    def listen(self, flow, made):
        self.clients[made.fileno()] = (flow, made)
        self.poll.register(made, select.EPOLLIN)

    def run(self):
        while not self.over.is_set():
            now = time.monotonic()
            for flow in self.flows:
                # after a pause of this process: only a few at once, since queues on the path are short
                flow.due = max(flow.due, now - 0.02)
                while flow.due <= now:
                    flow.due += flow.every
                    self.send(flow, now)
            self.forget(now)
            self.receive(0.001)
        # answers still in flight
        end = time.monotonic() + self.patience
        while any(flow.waiting for flow in self.flows) and time.monotonic() < end:
            self.receive(0.05)
            self.forget(time.monotonic())
        for made in [*self.servers.values(), *(made for _, made in self.clients.values())]:
            made.close()

    def send(self, flow, now):
        made = flow.socket or flow.made()
        try:
            made.sendto(b"%d %d" % (flow.number, flow.sent), (flow.target.address, flow.port))
        except OSError as error:
            if error.errno != errno.ECONNREFUSED:
                raise
        if flow.allowed:
            flow.waiting[flow.sent] = now
        if not flow.socket:
            if flow.allowed:
                self.listen(flow, made)
                self.new.append((now, made))
            else:
                made.close()
        flow.sent += 1

    def forget(self, now):
        while self.new and self.new[0][0] < now - self.patience:
            made = self.new.pop(0)[1]
            if self.clients.pop(made.fileno(), None):
                made.close()
        for flow in self.flows:
            while flow.waiting:
                number, sent = next(iter(flow.waiting.items()))
                if sent > now - self.patience:
                    break
                del flow.waiting[number]
                flow.lost.append(sent)

    def receive(self, patience):
        for fd, _ in self.poll.poll(patience, 256):
            if fd in self.servers:
                self.serve(self.servers[fd])
            elif fd in self.clients:
                flow, made = self.clients[fd]
                for data, _ in datagrams(made):
                    sent = flow.waiting.pop(int(data.split()[1]), None)
                    flow.slowest = max(flow.slowest, time.monotonic() - sent) if sent else flow.slowest
                if not flow.socket:
                    del self.clients[fd]
                    made.close()

    def serve(self, made):
        for data, who in datagrams(made):
            flow = self.flows[int(data.split()[0])]
            if flow.allowed:
                try:
                    made.sendto(data, who)
                except OSError:
                    pass
            else:
                flow.arrived.append(time.monotonic())

    def end(self):
        self.over.set()
        self.join()


def datagrams(made):
    while True:
        try:
            yield made.recvfrom(64)
        except OSError:
            return

/** `headroom port-forward`: ports of this machine lead to ports of a running task. */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { TaskChannel } from '../../clients/typescript/channels.ts'
import type { HeadroomClient } from '../../clients/typescript/client.ts'
import { roomIn } from '../../controller/api/channels/room.ts'
import { isFinal } from '../../controller/model/task.ts'
import { CommandFailure, EXIT_CONFLICT, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { untilInterrupted } from '../command/interrupts.ts'
import { openClient, type ServerOption } from '../command/session.ts'
import { taskNamed } from '../command/task-named.ts'

interface Forwarding {
  /** 0: any free port. */
  readonly local: number
  readonly port: number
}

const HOST = '127.0.0.1'
const MAX_PORT = 65_535

export async function portForward(
  text: string,
  ports: readonly string[],
  server: ServerOption,
): Promise<number> {
  const forwardings = ports.map(forwardingIn)
  const client = openClient(server)
  const id = await taskNamed(client, text)
  const { state } = await client.tasks.get(id)
  if (isFinal(state)) throw new CommandFailure(`task ${id} has ended (${state})`, EXIT_CONFLICT)
  const sockets = new Set<Socket>()
  const servers: Server[] = []
  try {
    for (const forwarding of forwardings) servers.push(await listen(client, id, forwarding, sockets))
    await untilInterrupted(
      (signal) => new Promise((done) => signal.addEventListener('abort', () => done(), { once: true })),
    )
  } finally {
    for (const each of servers) each.close()
    for (const socket of sockets) socket.destroy()
  }
  return EXIT_OK
}

function forwardingIn(text: string): Forwarding {
  const [, local, port = local] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? []
  const [here, there] = [Number(local), Number(port)]
  const isGiven = text.includes(':') || here > 0
  if (local === undefined || !isGiven || here > MAX_PORT || there < 1 || there > MAX_PORT)
    throw new UsageError(
      `${JSON.stringify(text)} must be LOCAL:PORT or PORT, with ports from 1 to ${MAX_PORT}; LOCAL may be 0`,
    )
  return { local: here, port: there }
}

function listen(
  client: HeadroomClient,
  id: string,
  { local, port }: Forwarding,
  sockets: Set<Socket>,
): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    forward(client, id, port, socket).catch((error: unknown) => {
      process.stderr.write(`headroom: port ${port}: ${(error as Error).message}\n`)
      socket.destroy()
    })
  })
  return new Promise((resolve, reject) => {
    server.once('error', (error) =>
      reject(new CommandFailure(`cannot listen on ${HOST}:${local}: ${error.message}`)),
    )
    server.listen(local, HOST, () => {
      const { port: here } = server.address() as AddressInfo
      process.stdout.write(`${HOST}:${here} forwards to port ${port} of task ${id}; press Ctrl-C to stop\n`)
      resolve(server)
    })
  })
}

async function forward(client: HeadroomClient, id: string, port: number, socket: Socket): Promise<void> {
  socket.pause()
  const channel = await client.tasks.openChannel(id, { port })
  socket.once('close', () => channel.close())
  send(socket, channel)
  const end = await channel
    .receive({
      data: async (bytes) => {
        if (!socket.destroyed && !socket.write(bytes)) await roomIn(socket)
      },
      errors: () => {},
      end: () => void socket.end(),
    })
    .catch((error: unknown) => {
      if (!socket.destroyed) throw error
    })
  if (end?.kind === 'cut' && !socket.destroyed) throw new CommandFailure(end.why)
  socket.end()
}

function send(socket: Socket, channel: TaskChannel): void {
  socket.on('data', (bytes: Buffer) => {
    socket.pause()
    void channel.send(bytes).then(() => socket.resume())
  })
  socket.once('end', () => void channel.sendEnd())
  socket.resume()
}

import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { discardRest } from '../../controller/api/http/refused-upload.ts'

const MIB = 1_048_576

/** The sender of a body of 1 GiB, which the server refuses. It reads nothing until it is told to. */
async function sender(discards?: Parameters<typeof discardRest>[1]): Promise<Socket> {
  const server = createServer((request, response) => {
    discardRest(request, discards)
    response.writeHead(507).end('refused')
  })
  server.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${1024 * MIB}\r\n\r\n`)
  return socket
}

function send(socket: Socket, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(Buffer.alloc(bytes), (error) => (error ? reject(error) : resolve()))
  })
}

describe('the sender of a body that is refused', () => {
  it('can send for some time, and then reads the answer', async () => {
    const socket = await sender()
    for (let i = 0; i < 8; i++) await send(socket, MIB)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 507 .*refused/s)
  })

  it.each([
    ['after some time', { forMs: 50, maxBytes: 1024 * MIB }],
    ['after a number of bytes', { forMs: 3_600_000, maxBytes: MIB }],
  ])('is disconnected %s when it does not stop', async (_when, discards) => {
    const socket = await sender(discards)
    socket.on('error', () => undefined)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    const sending = (): void => void (socket.destroyed || socket.write(Buffer.alloc(MIB), sending))
    sending()
    await closed
  })
})

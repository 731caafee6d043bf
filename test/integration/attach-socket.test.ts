/** The socket of leases, with the guard program that looks up its clients. */
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, expect, it } from 'vitest'
import { openAttachSocket } from '../../gpu-server/devices/attach-socket.ts'
import type { LineSocket } from '../../gpu-server/devices/line-socket.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { socketPeer, type SocketPeer } from '../../gpu-server/guard/socket-peer.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

const folder = temporaryFolder()
let open: LineSocket | null = null
let client: Socket | null = null
afterEach(() => {
  open?.close()
  client?.destroy()
})

it('A client is named by the kernel, and each of its lines is answered', async () => {
  const program = await guardProgram()
  const peers: SocketPeer[] = []
  const path = join(folder, 'attach.sock')
  open = await openAttachSocket(path, null, (socket) => socketPeer(program, socket), {
    attach: (token) => ({ error: `no lease has ${token}` }),
    detach: () => ({ detached: true }),
    busy: (isBusy, peer) => {
      peers.push(peer)
      return { busy: isBusy }
    },
  })
  client = createConnection(path)
  const answers = createInterface(client)[Symbol.asyncIterator]()
  const answerTo = async (line: string): Promise<unknown> => {
    client?.write(`${line}\n`)
    return JSON.parse((await answers.next()).value as string)
  }
  expect(await answerTo('{"busy": true}')).toEqual({ busy: true })
  expect(await answerTo('{"attach": "abc"}')).toEqual({ error: 'no lease has abc' })
  expect(await answerTo('{"busy": 1}')).toHaveProperty('error')
  expect(await answerTo('')).toHaveProperty('error')
  expect(peers).toEqual([{ uid: process.getuid?.(), pid: process.pid }])
  const closed = once(client, 'close')
  expect(await answerTo('x'.repeat(2_000))).toEqual({ error: 'line is longer than 1024 characters' })
  client.write('x'.repeat(2_000))
  await closed
})

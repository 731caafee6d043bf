import { once } from 'node:events'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { openControlSocket } from '../../gpu-server/devices/control-socket.ts'
import type { LineSocket } from '../../gpu-server/devices/line-socket.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { until } from '../support/live-cluster.ts'

const folder = temporaryFolder()
const path = join(folder, 'task.sock')
let open: LineSocket | null = null
const sockets = new Set<Socket>()
afterEach(() => {
  open?.close()
  sockets.forEach((socket) => socket.destroy())
})

interface Talk {
  readonly said: string[]
  readonly answers: string[]
  send(text: string): void
  readonly socket: Socket
}

async function talk(): Promise<Talk> {
  const said: string[] = []
  open = await openControlSocket(
    path,
    null,
    {
      busy: (isBusy) => said.push(`busy ${isBusy}`),
      wanted: () => said.push('wanted'),
      allocate: (mib, answer) => {
        said.push(`allocate ${mib}`)
        if (mib < 1_000) answer(mib < 500)
      },
      swaps: (send) => {
        said.push('swaps')
        send({ suspend: { deadline_ms: 1_000 } })
      },
      left: () => void (said.includes('swaps') && said.push('left')),
      hookDone: (_send, order, residentMib) => said.push(`${order} done, ${residentMib}`),
    },
    () => {},
  )
  return { said, ...(await connect()) }
}

async function connect(): Promise<Omit<Talk, 'said'>> {
  const socket = createConnection(path)
  sockets.add(socket)
  const answers: string[] = []
  socket.setEncoding('utf8').on('data', (text: string) => answers.push(...text.trim().split('\n')))
  socket.on('error', () => {})
  await once(socket, 'connect')
  return { answers, send: (text) => void socket.write(text), socket }
}

it('receives busy, idle and want, and answers allocations', async () => {
  const { said, answers, send } = await talk()
  send('{"busy": true}\n{"busy": false}\n\n{"want": true}\n{"allocate_mib"')
  send(': 100}\n{"allocate_mib": 600}\n')
  await until('both are answered', () => answers.length === 2)
  expect(said).toEqual(['busy true', 'busy false', 'wanted', 'allocate 100', 'allocate 600'])
  expect(answers).toEqual(['{"allocate_mib":100,"granted":true}', '{"allocate_mib":600,"granted":false}'])
})

it('reports an invalid line and continues', async () => {
  const wrong = [
    'no',
    '[]',
    '7',
    '{}',
    '{"busy": 1}',
    '{"want": false}',
    '{"allocate_mib": 0}',
    '{"allocate_mib": 1.5}',
    '{"x": 1}',
    '{"busy": true, "want": true}',
  ]
  const { said, answers, send } = await talk()
  send(`${wrong.join('\n')}\n{"want": true}\n`)
  await until('the last line is heard', () => said.length === 1 && answers.length === wrong.length)
  expect(answers.every((answer) => 'error' in (JSON.parse(answer) as object))).toBe(true)
})

it('closes a connection whose line is too long', async () => {
  const { said, answers, send, socket } = await talk()
  send('x'.repeat(5_000))
  await once(socket, 'close')
  expect(answers.join()).toMatch(/longer than 1024 characters/)
  expect(said).toEqual([])
})

it('limits concurrent allocations and connections', async () => {
  const { said, answers, send } = await talk()
  send('{"allocate_mib": 2000}\n'.repeat(9))
  await until('one is refused', () => answers.length === 1)
  expect(said.length).toBe(8)
  for (let i = 1; i < 16; i++) await connect()
  const { socket } = await connect()
  await once(socket, 'close')
})

it('sends orders to the connection that takes them, and receives what stays in VRAM', async () => {
  const { said, answers, send, socket } = await talk()
  send('{"swaps": true}\n')
  await until('it has an order', () => answers.length === 1)
  expect(answers).toEqual(['{"suspend":{"deadline_ms":1000}}'])
  send('{"suspended": {"resident_mib": 512}}\n{"suspended": {}}\n{"resumed": true}\n')
  send('{"suspended": {"resident_mib": -1}}\n{"resumed": 1}\n{"swaps": false}\n')
  await until('the wrong ones are answered', () => answers.length === 4)
  expect(answers.slice(1)).toEqual([
    '{"error":"suspended.resident_mib: must be an integer from 0 to 16777216"}',
    '{"error":"resumed: must be true"}',
    '{"error":"swaps: must be true"}',
  ])
  socket.destroy()
  await until('it is gone', () => said.includes('left'))
  expect(said).toEqual(['swaps', 'suspend done, 512', 'suspend done, null', 'resume done, null', 'left'])
})

it('replaces the socket of an earlier server, is private to its user, and is removed on close', async () => {
  writeFileSync(path, 'left')
  await talk()
  expect(statSync(path).mode & 0o777).toBe(0o600)
  open?.close()
  expect(existsSync(path)).toBe(false)
})

it('fails if the folder is missing', async () => {
  const nothing = (): void => {}
  const hooks = { swaps: nothing, left: nothing, hookDone: nothing }
  const listener = { busy: nothing, wanted: nothing, allocate: nothing, ...hooks }
  await expect(openControlSocket(join(folder, 'none', 'x.sock'), null, listener, () => {})).rejects.toThrow(
    /ENOENT|EACCES/,
  )
})

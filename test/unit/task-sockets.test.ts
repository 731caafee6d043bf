import { once } from 'node:events'
import { createConnection } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { TaskSockets } from '../../gpu-server/devices/task-sockets.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { until } from '../support/live-cluster.ts'

let sockets: TaskSockets | null = null
afterEach(() => sockets?.closeAll())

it('A waiting larger allocation is requested again when a later smaller one is granted', async () => {
  const asked: number[] = []
  sockets = new TaskSockets(temporaryFolder(), () => null, {
    busy: () => {},
    allocationWanted: (_task, _attempt, mib) => asked.push(mib),
  })
  const socket = createConnection(await sockets.open('a', 1))
  await once(socket, 'connect')
  let said = ''
  socket.on('data', (bytes) => (said += bytes.toString()))
  socket.write('{"allocate_mib":9000}\n{"allocate_mib":6000}\n{"allocate_mib":300}\n')
  await until('all are asked for', () => asked.length === 3)
  sockets.answer('a', 1, 300, true)
  expect(asked.slice(3)).toEqual([6_000])
  sockets.answer('a', 1, 6_000, true)
  expect(asked.slice(4)).toEqual([9_000])
  sockets.answer('a', 1, 9_000, false)
  await until('all are answered', () => said.split('\n').length === 4)
  expect(said).toBe(
    '{"allocate_mib":300,"granted":true}\n{"allocate_mib":6000,"granted":true}\n' +
      '{"allocate_mib":9000,"granted":false}\n',
  )
  expect(asked.length).toBe(5)
  socket.destroy()
})

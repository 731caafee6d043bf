/** A host device with a task that runs while its VRAM is away: requests reach it through its proxy only. */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import type { SwapOutcome } from '../../gpu-server/core/device.ts'
import type { KeptAttempt } from '../../gpu-server/core/storage.ts'
import { HostDevice } from '../../gpu-server/devices/host-device.ts'
import { ProcessAccelerator } from '../../gpu-server/devices/process-accelerator.ts'
import { TaskPlaces } from '../../gpu-server/devices/task-places.ts'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { freePort } from '../support/free-port.ts'
import { guardWorld, newGuardFolder, until } from '../support/guard-world.ts'
import { ORDER, PORTS, TestClient } from '../support/proxied-task.ts'

/** The driver cannot swap its tasks, and measures nothing of those whose hooks have moved it out. */
class Running extends ProcessAccelerator {
  constructor() {
    const gpu = { model: 'declared', physicalMib: 8_192, swapMs: () => 0 }
    super({ gpus: [gpu], now: bootTime, wait: () => Promise.resolve() })
  }

  override swapOut(): Promise<SwapOutcome> {
    return Promise.resolve('copy_failed')
  }

  override usedMib(): Promise<readonly number[]> {
    return Promise.resolve([0])
  }
}

const devices: HostDevice[] = []
const clock = createSystemClock(bootTime)
afterEach(async () => {
  for (const device of devices.splice(0)) await device.close()
})

/** A server on this state folder; `accelerator` stands for the GPU, which outlives it. */
async function deviceIn(folder: string, accelerator: Running) {
  const { guards } = await guardWorld({ folder })
  const notes: string[] = []
  const wanted: string[] = []
  const used: string[] = []
  const device = new HostDevice({
    guards,
    program: await guardProgram(),
    accelerator,
    clock,
    socketFolder: join(folder, 's'),
    places: new TaskPlaces({
      identity: { kind: 'server_user' },
      workFolder: join(folder, 'work'),
      stateFolder: folder,
    }),
    environment: { PATH: process.env['PATH'] ?? '' },
    mounts: [],
    maxOutputBytes: 1 << 16,
    idleAfterMs: 100,
    attachments: null,
    proxies: { address: '127.0.0.1', ports: PORTS },
    onNote: (line) => notes.push(line),
  })
  devices.push(device)
  await device.open()
  device.observe({
    exited: () => {},
    gpuWanted: (taskId) => wanted.push(taskId),
    gpuUsed: (taskId) => used.push(taskId),
    allocationWanted: () => {},
    freeMeasured: () => {},
    restStays: () => false,
  })
  return { device, notes, wanted, used }
}

type Server = Awaited<ReturnType<typeof deviceIn>>

/** @param suspend its hook; null: the driver's method */
function startOn(port: number, suspend: string | null = 'true'): AttemptStart {
  const hooks = { suspend: { command: [suspend ?? ''] }, resume: { command: ['true'] } }
  return {
    taskId: 'model',
    attempt: 1,
    gpus: [0],
    vramMib: 1_000,
    gpuMode: 'shared',
    noswap: 0,
    priority: 2,
    onNodeLoss: 'wait',
    isLease: false,
    wakePorts: [port],
    ...(suspend === null ? {} : { swapMethod: 'hooks', swapHooks: hooks }),
  }
}

async function launch({ device }: Server, port: number, suspend?: string | null): Promise<void> {
  const start = startOn(port, suspend)
  const command = [process.execPath, '-e', ORDER, String(port)]
  const launched = await new Promise((done) => {
    device.launch({ start, command, env: {}, onUse: () => {} }, done)
  })
  expect(launched).toMatchObject({ error: null })
  await expect
    .poll(() => new Promise((done) => device.readOutput('model', 1, 'stdout', 0, 100, done)))
    .toMatchObject({ base64: Buffer.from('listening\n').toString('base64') })
}

function suspend({ device }: Server): Promise<readonly [SwapOutcome, boolean | undefined]> {
  return new Promise((done) => {
    device.suspend('model', 1, (outcome, left) => done([outcome, left?.isWakeable]))
  })
}

function resume({ device }: Server): Promise<SwapOutcome> {
  return new Promise((done) => {
    device.resume('model', 1, done)
  })
}

async function portOf({ device }: Server): Promise<number> {
  await until('it has an address', () => device.addressesOf('model', 1)[0]?.address)
  return Number(device.addressesOf('model', 1)[0]?.address?.split(':')[1])
}

it('A request waits in the proxy while the task is out, and is answered after its return', async () => {
  const server = await deviceIn(newGuardFolder(), new Running())
  await launch(server, await freePort())
  const port = await portOf(server)
  await until('it is idle', () => server.used.length > 0)
  expect(await suspend(server)).toEqual(['done', true])
  server.wanted.length = 0
  const client = await TestClient.open(port)
  client.socket.write('hello')
  await until('it is wanted', () => server.wanted.includes('model'))
  await delay(200)
  expect(client.text).toBe('')
  expect(await resume(server)).toBe('done')
  await client.receives('0 hello')
  expect(server.notes).toEqual([])
})

it('A request is passed on when the swap-out fails', async () => {
  const server = await deviceIn(newGuardFolder(), new Running())
  await launch(server, await freePort(), 'false')
  const port = await portOf(server)
  expect(await suspend(server)).toEqual(['copy_failed', false])
  const client = await TestClient.open(port)
  client.socket.write('hello')
  await client.receives('0 hello')
})

it('The next server keeps the address of such a task, and hears of the request that waits', async () => {
  const [folder, accelerator] = [newGuardFolder(), new Running()]
  const first = await deviceIn(folder, accelerator)
  await launch(first, await freePort())
  const port = await portOf(first)
  await suspend(first)
  await first.device.close()
  const client = await TestClient.open(port)
  client.socket.write('hello')
  const next = await deviceIn(folder, accelerator)
  const kept: KeptAttempt = {
    ...startOn(0),
    residency: 'swapped_out',
    generation: 2,
    isStartAcknowledged: true,
    wantsGpu: false,
    isWakeable: true,
    isOutByHooks: true,
  }
  const [survivor] = next.device.survivors([kept])
  expect(survivor).toMatchObject({ end: null, residency: 'swapped_out', isFrozen: false, wantsGpu: false })
  await until('it is wanted', () => next.wanted.includes('model'))
  expect(await portOf(next)).toBe(port)
  expect(await resume(next)).toBe('done')
  await client.receives('0 hello')
  expect(next.notes).toEqual([])
})

it('A task that is stopped while it is out gets an address as well, which passes everything', async () => {
  const server = await deviceIn(newGuardFolder(), new Running())
  await launch(server, await freePort(), null)
  const { device } = server
  await until('it has an address', () => typeof device.addressesOf('model', 1)[0]?.address === 'string')
  const client = await TestClient.open(Number(device.addressesOf('model', 1)[0]?.address?.split(':')[1]))
  client.socket.write('hello')
  await client.receives('0 hello')
})

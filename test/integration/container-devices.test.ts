/** From the placement of a task to the request that reaches the socket of the engine. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import type { Launched } from '../../gpu-server/core/device.ts'
import { HostDevice } from '../../gpu-server/devices/host-device.ts'
import { ProcessAccelerator } from '../../gpu-server/devices/process-accelerator.ts'
import { TaskPlaces } from '../../gpu-server/devices/task-places.ts'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { FakeEngine, fakeContainers } from '../support/fake-engine.ts'
import { guardWorld, newGuardFolder } from '../support/guard-world.ts'

const GPUS = [0, 1, 2, 3]

/** Four GPUs with UUIDs. */
class NamedGpus extends ProcessAccelerator {
  constructor() {
    const gpu = { model: 'declared', physicalMib: 8_192, swapMs: () => 0 }
    super({ gpus: GPUS.map(() => gpu), now: bootTime, wait: () => Promise.resolve() })
  }

  override containerDevices(gpus: readonly number[] = []): readonly string[] {
    return gpus.map((gpu) => `GPU-${gpu}`)
  }
}

const start = (taskId: string, gpus: readonly number[]): AttemptStart => ({
  taskId,
  attempt: 1,
  gpus,
  vramMib: 1_000,
  gpuMode: 'shared',
  noswap: 0,
  priority: 2,
  onNodeLoss: 'wait',
  isLease: false,
})

describe('the container of a placed task', () => {
  let engine: FakeEngine
  let device: HostDevice
  const clock = createSystemClock(bootTime)
  beforeAll(async () => {
    engine = await new FakeEngine().start()
    engine.answer = ({ path }) => (path.endsWith('/start') ? { status: 500, body: { message: 'no' } } : null)
    const folder = newGuardFolder()
    const { guards } = await guardWorld({ folder, containers: fakeContainers(engine.socketPath, folder) })
    const workFolder = join(folder, 'work')
    device = new HostDevice({
      guards,
      program: await guardProgram(),
      accelerator: new NamedGpus(),
      clock,
      socketFolder: join(folder, 's'),
      places: new TaskPlaces({ identity: { kind: 'server_user' }, workFolder, stateFolder: folder }),
      environment: { LD_LIBRARY_PATH: '/host/only' },
      mounts: [{ name: 'datasets', source: '/srv/datasets', isReadOnly: true }],
      maxOutputBytes: 1 << 16,
      idleAfterMs: 5_000,
      attachments: null,
      onNote: () => {},
    })
    await device.open()
  })
  afterAll(async () => {
    await device.close()
    clock.stop()
    await engine.end()
  })

  const launched = (taskId: string, gpus: readonly number[]): Promise<Launched> =>
    new Promise((resolve) => {
      const how = {
        command: ['true'],
        image: 'team/train:1',
        epoch: 9,
        env: { MINE: 'secret' },
        onUse: () => {},
      }
      device.launch({ start: start(taskId, gpus), ...how }, resolve)
    })

  it.each([[[2, 0]], [[3]], [[]]])('names GPUs %j and no others to the engine', async (gpus) => {
    engine.calls.length = 0
    await launched(`on-${gpus.join('-')}`, gpus)
    const [call] = engine.callsOf('POST', /\/containers\/create$/)
    const text = JSON.stringify(call?.body)
    const named = gpus.map((gpu) => `GPU-${gpu}`)
    expect(new Set(text.match(/GPU-\d/g))).toEqual(new Set(named.length === 0 ? null : named))
    expect(call?.body).toMatchObject({
      Env: [`NVIDIA_VISIBLE_DEVICES=${named.join(',') || 'void'}`],
      Labels: { 'io.headroom.epoch': '9', 'io.headroom.task': `on-${gpus.join('-')}` },
    })
    // The guard passes variables of host and task; the engine stores its requests.
    expect(text).not.toMatch(/host.only|MINE|secret/)
  })
})

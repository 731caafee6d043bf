/** Faults in a fleet in real time: equal to virtual time as far as they belong to the fleet. */
import { describe, expect, it } from 'vitest'
import { simServe } from '../../cli/sim/sim-serve.ts'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createController } from '../../controller/controller.ts'
import type { Event } from '../../controller/model/event.ts'
import { deferredBus } from '../../simulator/network/deferred-bus.ts'
import { createLiveFleet, type LiveFleet } from '../../simulator/world/live.ts'
import { PacedClock } from '../../simulator/kernel/paced-clock.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { refuseBeyondFleet } from '../../simulator/fleet/fleet-faults.ts'
import { CommandWorkload } from '../../simulator/fleet/command-work.ts'
import { ENDLESS } from '../../simulator/fleet/open-workload.ts'
import { FAULT_KINDS, type Fault } from '../../simulator/scenario/fault.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { createServedFleet } from '../../simulator/world/served-fleet.ts'
import { plainBus } from '../support/plain-bus.ts'
import { manualTime } from '../support/manual-time.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'

const CONFIG = { heartbeat_seconds: 1, run_lease_seconds: 15 }
const END_MS = 300_000

const FLEET = `
scenario: breaks
version: 1
clock: { until: 5m, drain: false }
fleet: [{ name: "n{i}", count: 4, gpu: { vram_mib: 40960 } }]
config: ${JSON.stringify(CONFIG)}
workload:
  - { task: { id: moves, vram_mib: 20Gi, run: 1h, on_node_loss: requeue } }
  - { task: { id: fails, vram_mib: 20Gi, run: 1h, on_node_loss: fail } }
  - { task: { id: waits, vram_mib: 30Gi, run: 1h } }
  - { task: { id: alone, vram_mib: 30Gi, run: 1h } }
`

const FAULTS = `
faults:
  - { at: 10s, crash: n0, for: 70s }
  - { at: 15s, bounce: n1 }
  - { at: 100s, partition: [controller, n1], for: 60s }
  - { at: 120s, gpu_lost: { node: n2, gpu: 0 }, for: 30s }
  - { at: 180s, hold: [controller, n3], for: 8s }
  - { at: 180s, delay: [controller, n1], ms: 200ms, for: 20s }
  - { at: 210s, clock_drift: n3, ppm: 40000, for: 20s }
  - { at: 230s, node_disk_lost: n2, for: 40s }
`

const scenarioOf = (faults: string) => loadScenario({ text: FLEET + faults, baseDir: '.' }).scenario

/** Outcome of each task, without numbers that depend on jitter. */
function told(
  events: readonly Event[],
  names: ReadonlyMap<string, string> = new Map(),
): Record<string, string[]> {
  const lists: Record<string, string[]> = {}
  for (const { kind, taskId, nodeId, data } of events) {
    const who = taskId === null ? nodeId : (names.get(taskId) ?? taskId)
    if (who === null || (taskId === null && kind !== 'node_status')) continue
    ;(lists[who] ??= []).push(
      [kind, data['status'] ?? data['state'] ?? data['reason']]
        .filter((each) => each !== undefined)
        .join(' '),
    )
  }
  return lists
}

async function inVirtualTime(faults: string): Promise<Record<string, string[]>> {
  const events: Event[] = []
  const watch = (world: { listen(listener: (list: readonly Event[]) => void): void }) => {
    world.listen((list) => events.push(...list))
    return { afterStep: () => {} }
  }
  await runScenario(
    scenarioOf(faults),
    { scenarioSha256: null, traceSha256: null, version: 'test' },
    { watch },
  )
  return told(events)
}

describe('a real-time fleet inside the controller', () => {
  it.each(['', FAULTS, `${FAULTS}  - { at: 260s, restart: broker, for: 2s }\n`])(
    'has the same faults as in virtual time (%#)',
    async (faults) => {
      const real = manualTime(1_000_000)
      const events: Event[] = []
      const notes: string[] = []
      const recording = new RecordingInMemory()
      const names = new Map<string, string>()
      const see = (list: readonly Event[]): void => {
        events.push(...list)
        for (const { spec } of fleet.controller.views.openTasks()) names.set(spec.id, spec.name)
      }
      const fleet: LiveFleet = createLiveFleet({
        ...{
          scenario: scenarioOf(faults),
          store: createMemoryStore(),
          real,
          startAt: real.now(),
          seed: 'live',
        },
        controller: { initialConfig: CONFIG, inputTap: recording.recorder(), onEvents: see },
        onFault: (phase, { kind }: Fault) => notes.push(`${phase} ${kind}`),
      })
      await fleet.start()
      await real.advance(END_MS)
      await fleet.stop()
      expect(told(events, names)).toEqual(await inVirtualTime(faults))
      expect(notes.filter((note) => note.startsWith('begins'))).toHaveLength(
        (faults.match(/at:/g) ?? []).length,
      )
      expect(recording.nested).toBe(0)
    },
  )
})

describe('a real-time fleet of a separate controller', () => {
  it('has the same faults as in virtual time', async () => {
    const real = manualTime(1_000_000)
    const events: Event[] = []
    const clock = new PacedClock(real.now(), real)
    const bus = plainBus(clock, 'wire')
    const controller = createController(
      {
        clock,
        random: createSeededRandom('elsewhere'),
        bus: deferredBus(bus, clock),
        store: createMemoryStore(),
      },
      { initialConfig: CONFIG, onEvents: (list) => void events.push(...list) },
    )
    await controller.start()
    const scenario = scenarioOf(FAULTS)
    const fleet = createServedFleet({
      ...{ plan: scenario, busFor: () => deferredBus(bus, clock), real, speed: 1, seed: 'served' },
      ...{ workload: new CommandWorkload(ENDLESS), onFault: () => {} },
    })
    fleet.start()
    for (const item of scenario.workload) {
      if (item.kind !== 'task') continue
      controller.commands.submitTask(
        { ...item.request, name: item.request.id, command: ['work', 'busy=1h'] },
        () => {},
      )
    }
    clock.begin()
    await real.advance(END_MS)
    expect(told(events)).toEqual(await inVirtualTime(FAULTS))
    fleet.stop()
    await controller.stop()
    clock.stop()
  })
})

describe('a fault outside the fleet', () => {
  it('is refused by name and line while a controller serves other clients', async () => {
    const served = simServe('scenarios/faults/crash-controller.scenario.yaml', {
      speed: 1,
      faults: true,
    })
    await expect(served).rejects.toThrow(
      new RegExp(
        /crash-controller\.scenario\.yaml:\d+:\d+: faults\[0\]: crash_controller: .*a served /.source +
          /fleet has no faults of the controller/.source,
      ),
    )
    const swarm = simServe('scenarios/faults/swarm.scenario.yaml', { speed: 1, faults: true })
    await expect(swarm).rejects.toThrow(
      new RegExp(
        /:\d+:\d+: faults\[0\]\.swarm\.kinds: must leave out restart_broker, /.source +
          /restart_controller, crash_controller, /.source,
      ),
    )
  })

  it('is a fault of the controller, or of a real broker', () => {
    const refusedOf = (faults: readonly object[], hasBroker: boolean): string[] => {
      const text = FLEET + `faults: ${JSON.stringify(faults)}\n`
      const refused: string[] = []
      const { scenario } = loadScenario({ text, baseDir: '.' })
      refuseBeyondFleet(
        scenario.faults,
        (keys, detail) => refused.push(`${keys.join('.')} ${detail.split(':')[0]}`),
        hasBroker,
      )
      return refused
    }
    const beyond = [
      { at: '1s', restart: 'controller' },
      { at: '1s', crash: 'controller', for: '1s' },
      { at: '1s', second_controller: true, for: '1s' },
      { at: '1s', lease_lost: 'cut', for: '1s' },
      { at: '1s', store_frozen: true, for: '1s' },
      { at: '1s', store_failover: true, for: '1s' },
      { at: '1s', slow_disk: 'controller', ms: '1ms', for: '1s' },
      { at: '1s', disk_full: 'controller', for: '1s' },
      { at: '1s', fsync_error: 'controller' },
      { at: '1s', store_set_back: 'controller', to: 'start' },
    ]
    const own = [
      { at: '1s', disk_full: 'n0', for: '1s' },
      { at: '1s', crash: 'n0', for: '1s' },
      { at: '1s', drop: 'all', probability: 0.5, for: '1s' },
    ]
    const broker = { at: '1s', restart: 'broker' }
    const names = [
      'restart_controller',
      'crash_controller',
      'second_controller',
      'lease_lost',
      'store_frozen',
      'store_failover',
      'slow_disk',
      'disk_full',
      'fsync_error',
      'store_set_back',
    ]
    expect(refusedOf([...own, ...beyond, broker], true)).toEqual(
      names.map((name, i) => `faults.${own.length + i} ${name}`),
    )
    expect(refusedOf([broker, ...own], false)).toEqual(['faults.0 restart_broker'])
    expect(refusedOf([{ swarm: { until: '1m', kinds: ['crash', 'drop', 'restart_broker'] } }], true)).toEqual(
      [],
    )
    expect(FAULT_KINDS).toHaveLength(29)
  })
})

/** `faults` of a scenario: every kind as written and as loaded, and the messages about invalid ones. */
import { describe, expect, it } from 'vitest'
import { SWARM_KINDS } from '../../simulator/scenario/fault.ts'
import type { FaultItem } from '../../simulator/scenario/fault.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { ScenarioError } from '../../simulator/document/problem.ts'

const HEAD =
  'scenario: x\nversion: 1\nfleet: [{ name: "a100-{i}", count: 3, gpus: 2, gpu: { vram_mib: 40960 } }]\n'

function faultsOf(entry: string): readonly FaultItem[] {
  return loadScenario({ text: `${HEAD}faults:\n  - ${entry}\n`, baseDir: '/nowhere', file: 'x.yaml' })
    .scenario.faults
}

function problemOf(entry: string): string {
  try {
    faultsOf(entry)
  } catch (error) {
    if (error instanceof ScenarioError)
      return error.problems.map(({ path, detail }) => `${path}: ${detail}`).join('\n')
    throw error
  }
  return 'it was taken'
}

const EVERY_NODE = { nodes: null, direction: 'both' }

describe('a fault in a scenario', () => {
  it.each([
    [
      '{ at: 2h, crash: a100-1, for: 10m }',
      { kind: 'crash', atMs: 7_200_000, forMs: 600_000, node: 'a100-1' },
    ],
    ['{ at: 0, crash: a100-1 }', { kind: 'crash', atMs: 0, forMs: null, node: 'a100-1' }],
    ['{ at: 1m, bounce: a100-0 }', { kind: 'bounce', atMs: 60_000, forMs: 0, node: 'a100-0' }],
    [
      '{ at: 1m, node_disk_lost: a100-0 }',
      { kind: 'node_disk_lost', atMs: 60_000, forMs: 0, node: 'a100-0' },
    ],
    [
      '{ at: 3h, partition: [controller, a100-2], for: 60s }',
      { kind: 'partition', atMs: 10_800_000, forMs: 60_000, link: { nodes: ['a100-2'], direction: 'both' } },
    ],
    [
      '{ at: 1m, partition: [a100-2, controller], one_way: true, for: 1m }',
      {
        kind: 'partition',
        atMs: 60_000,
        forMs: 60_000,
        link: { nodes: ['a100-2'], direction: 'to_controller' },
      },
    ],
    [
      '{ at: 1m, partition: [controller, [a100-0, a100-2]], one_way: true, for: 1m }',
      {
        kind: 'partition',
        atMs: 60_000,
        forMs: 60_000,
        link: { nodes: ['a100-0', 'a100-2'], direction: 'from_controller' },
      },
    ],
    ['{ at: 1m, hold: all, for: 1m }', { kind: 'hold', atMs: 60_000, forMs: 60_000, link: EVERY_NODE }],
    [
      '{ at: 1m, delay: a100-0, ms: 20s, for: 1m }',
      {
        kind: 'delay',
        atMs: 60_000,
        forMs: 60_000,
        ms: 20_000,
        permille: 1000,
        link: { nodes: ['a100-0'], direction: 'both' },
      },
    ],
    [
      '{ at: 1m, reorder: all, ms: 300, probability: 0.25, for: 1m }',
      { kind: 'reorder', atMs: 60_000, forMs: 60_000, ms: 300, permille: 250, link: EVERY_NODE },
    ],
    [
      '{ at: 1m, drop: all, probability: 0.1, for: 1m }',
      { kind: 'drop', atMs: 60_000, forMs: 60_000, permille: 100, link: EVERY_NODE },
    ],
    [
      '{ at: 1m, duplicate: [all, controller], probability: 1, for: 1m }',
      { kind: 'duplicate', atMs: 60_000, forMs: 60_000, permille: 1000, link: EVERY_NODE },
    ],
    ['{ at: 1m, restart: broker }', { kind: 'restart_broker', atMs: 60_000, forMs: 1000 }],
    ['{ at: 1m, restart: controller, for: 5s }', { kind: 'restart_controller', atMs: 60_000, forMs: 5000 }],
    ['{ at: 1m, restart: controller }', { kind: 'restart_controller', atMs: 60_000, forMs: 0 }],
    ['{ at: 1m, crash: controller }', { kind: 'crash_controller', atMs: 60_000, forMs: null, atPoint: null }],
    [
      '{ at: 1m, crash: controller, for: 30s, at_point: after_persist }',
      { kind: 'crash_controller', atMs: 60_000, forMs: 30_000, atPoint: 'after_persist' },
    ],
    [
      '{ at: 1m, second_controller: true, for: 30s }',
      { kind: 'second_controller', atMs: 60_000, forMs: 30_000 },
    ],
    ['{ at: 1m, store_frozen: true, for: 5s }', { kind: 'store_frozen', atMs: 60_000, forMs: 5000 }],
    ['{ at: 1m, store_failover: true, for: 5s }', { kind: 'store_failover', atMs: 60_000, forMs: 5000 }],
    [
      '{ at: 1m, lease_lost: paused, for: 30s }',
      { kind: 'lease_lost', atMs: 60_000, forMs: 30_000, how: 'paused' },
    ],
    [
      '{ at: 1m, slow_disk: controller, ms: 30, for: 1m }',
      { kind: 'slow_disk', atMs: 60_000, forMs: 60_000, ms: 30 },
    ],
    [
      '{ at: 1m, store_set_back: controller, back: 20s }',
      { kind: 'store_set_back', atMs: 60_000, forMs: null, to: { backMs: 20_000 }, loss: 'silent' },
    ],
    [
      '{ at: 1m, store_set_back: controller, to: epoch_start, loss: accepted, for: 5s }',
      { kind: 'store_set_back', atMs: 60_000, forMs: 5000, to: 'epoch_start', loss: 'accepted' },
    ],
    [
      '{ at: 1m, store_set_back: controller, back: 0s, loss: restored }',
      { kind: 'store_set_back', atMs: 60_000, forMs: null, to: { backMs: 0 }, loss: 'restored' },
    ],
    [
      '{ at: 1m, disk_full: controller, for: 1m }',
      { kind: 'disk_full', atMs: 60_000, forMs: 60_000, on: 'controller' },
    ],
    [
      '{ at: 1m, disk_full: a100-0, for: 1m }',
      { kind: 'disk_full', atMs: 60_000, forMs: 60_000, on: { node: 'a100-0' } },
    ],
    ['{ at: 1m, fsync_error: controller }', { kind: 'fsync_error', atMs: 60_000, forMs: null }],
    [
      '{ at: 1m, gpu_lost: { node: a100-0, gpu: 1 } }',
      { kind: 'gpu_lost', atMs: 60_000, forMs: null, node: 'a100-0', gpu: 1 },
    ],
    [
      '{ at: 1m, slow_swap: a100-0, factor: 2.5, for: 1m }',
      { kind: 'slow_swap', atMs: 60_000, forMs: 60_000, node: 'a100-0', factorPermille: 2500 },
    ],
    [
      '{ at: 1m, host_memory_short: a100-0, mib: 64Gi, for: 1m }',
      { kind: 'host_memory_short', atMs: 60_000, forMs: 60_000, node: 'a100-0', mib: 65_536 },
    ],
    [
      '{ at: 1m, clock_drift: a100-0, ppm: -20000, for: 1m }',
      { kind: 'clock_drift', atMs: 60_000, forMs: 60_000, node: 'a100-0', ppm: -20_000 },
    ],
    [
      '{ swarm: { until: 4h, heal_at: 5h, kinds: [crash, drop] } }',
      {
        kind: 'swarm',
        fromMs: 0,
        untilMs: 14_400_000,
        healAtMs: 18_000_000,
        kinds: ['crash', 'drop'],
        ratePerHour: 60,
      },
    ],
    [
      '{ swarm: { from: 1h, until: 4h, rate_per_hour: 5 } }',
      {
        kind: 'swarm',
        fromMs: 3_600_000,
        untilMs: 14_400_000,
        healAtMs: 14_400_000,
        kinds: SWARM_KINDS,
        ratePerHour: 5,
      },
    ],
  ])('is loaded: %s', (entry, expected) => expect(faultsOf(entry)).toEqual([expected]))

  it('keeps its place in the order of the file', () => {
    const faults = faultsOf('{ at: 2m, bounce: a100-0 }\n  - { at: 1m, bounce: a100-1 }')
    expect(faults.map((fault) => (fault.kind === 'bounce' ? fault.node : ''))).toEqual(['a100-0', 'a100-1'])
  })
})

describe('an invalid fault', () => {
  it.each([
    ['{ at: 2h, crush: a100-1 }', 'faults[0]: needs one of the keys crash, bounce,'],
    ['{ at: 2h, crush: a100-1 }', 'did you mean crash instead of crush?'],
    ['{ at: 2h, crash: a100-1, bounce: a100-1 }', 'faults[0]: has both crash and bounce'],
    ['{ at: 2h, crash: a100-9 }', 'faults[0].crash: the fleet has no node a100-9; did you mean a100-0?'],
    [
      '{ at: 2h, crash: contoller }',
      'faults[0].crash: the fleet has no node contoller; did you mean controller?',
    ],
    ['{ at: 2h, crash: zzzzzzzz }', 'faults[0].crash: the fleet has no node zzzzzzzz'],
    ['{ crash: a100-1 }', 'faults[0].at: is missing'],
    ['{ at: 2h, crash: a100-1, for: 10 }', 'faults[0].for: must be a whole number with a unit'],
    ['{ at: 2h, crash: a100-1, duration: 10m }', 'faults[0].duration: is not a known key; did you mean for?'],
    [
      '{ at: 2h, crash: a100-1, at_point: after_persist }',
      'faults[0].at_point: goes with crash: controller only',
    ],
    ['{ at: 2h, crash: controller, at_point: after_persits }', 'did you mean after_persist?'],
    ['{ at: 2h, partition: [controller, a100-1] }', 'faults[0].for: is missing'],
    [
      '{ at: 2h, partition: [a100-0, a100-1], for: 1m }',
      'faults[0].partition: must name controller and a node',
    ],
    [
      '{ at: 2h, partition: [controller, controller], for: 1m }',
      'faults[0].partition: must name controller and a node',
    ],
    [
      '{ at: 2h, partition: [controller, a10-1], for: 1m }',
      'faults[0].partition[1]: the fleet has no node a10-1; did you mean a100-1?',
    ],
    [
      '{ at: 2h, partition: [controller, [a100-0, b]], for: 1m }',
      'faults[0].partition[1][1]: the fleet has no node b',
    ],
    ['{ at: 2h, partition: all, one_way: true, for: 1m }', 'faults[0].one_way: needs to know which way'],
    ['{ at: 2h, drop: all, for: 1m }', 'faults[0].probability: is missing'],
    [
      '{ at: 2h, drop: all, probability: 1.5, for: 1m }',
      'faults[0].probability: must be a number above 0, at most 1; is 1.5',
    ],
    [
      '{ at: 2h, drop: all, probability: 0.0001, for: 1m }',
      'faults[0].probability: must be a probability in steps of 0.001',
    ],
    ['{ at: 2h, delay: all, for: 1m }', 'faults[0].ms: is missing'],
    [
      '{ at: 2h, restart: brocker }',
      'faults[0].restart: must be one of broker, controller; is "brocker"; did you mean broker?',
    ],
    [
      '{ at: 2h, lease_lost: stopped, for: 1m }',
      'faults[0].lease_lost: must be one of cut, unanswered, paused; is "stopped"',
    ],
    ['{ at: 2h, lease_lost: cut }', 'faults[0].for: is missing'],
    ['{ at: 2h, store_frozen: false, for: 1m }', 'faults[0].store_frozen: must be true'],
    ['{ at: 2h, store_failover: false, for: 1m }', 'faults[0].store_failover: must be true'],
    ['{ at: 2h, second_controller: false }', 'faults[0].second_controller: must be true'],
    ['{ at: 2h, gpu_lost: { node: a100-0, gpu: 2 } }', 'faults[0].gpu_lost.gpu: node a100-0 has 2 GPUs'],
    [
      '{ at: 2h, gpu_lost: { node: b100-0, gpu: 0 } }',
      'faults[0].gpu_lost.node: the fleet has no node b100-0; did you mean a100-0?',
    ],
    [
      '{ at: 2h, slow_swap: a100-0, factor: 0.5, for: 1m }',
      'faults[0].factor: must be a number from 1 to 1000; is 0.5',
    ],
    ['{ at: 2h, clock_drift: a100-0, ppm: 0, for: 1m }', 'faults[0].ppm: must not be 0'],
    ['{ at: 2h, fsync_error: a100-0 }', 'faults[0].fsync_error: must be controller'],
    ['{ at: 2h, store_set_back: a100-0, back: 1m }', 'faults[0].store_set_back: must be controller'],
    [
      '{ at: 2h, store_set_back: controller }',
      'faults[0].back: needs a duration, unless `to` names an earlier state',
    ],
    [
      '{ at: 2h, store_set_back: controller, back: 1m, to: start }',
      'faults[0].to: must be left out where `back` says how far',
    ],
    [
      '{ at: 1m, store_set_back: controller, back: 2m }',
      'faults[0].back: must not reach before the start of the run: write `to: start`',
    ],
    [
      '{ at: 1m, store_set_back: controller, back: 0s }',
      'faults[0].back: must be above 0 with loss: silent: nothing would be lost',
    ],
    [
      '{ at: 1m, store_set_back: controller, back: 0s, loss: accepted }',
      'faults[0].back: must be above 0 with loss: accepted',
    ],
    [
      '{ at: 1m, store_set_back: controller, back: 1s, loss: quiet }',
      'faults[0].loss: must be one of silent, accepted, restored',
    ],
    [
      '{ at: 1m, store_set_back: controller, to: yesterday }',
      'faults[0].to: must be one of start, epoch_start',
    ],
    ['{ swarm: { until: 4h, heal_at: 3h } }', 'faults[0].swarm.heal_at: must not be before until'],
    ['{ swarm: { from: 4h, until: 4h } }', 'faults[0].swarm.until: must be after from'],
    ['{ swarm: { until: 4h, kinds: [crush] } }', 'did you mean crash?'],
  ])('is refused: %s', (entry, problem) => expect(problemOf(entry)).toContain(problem))

  it('is any fault in a fleet with a reserved node name', () => {
    const text =
      'scenario: x\nversion: 1\nfleet: [{ name: all, gpu: { vram_mib: 40960 } }]\n' +
      'faults: [{ at: 0, bounce: all }]\n'
    expect(() => loadScenario({ text, baseDir: '/nowhere' })).toThrow(
      'a fleet with a node called all can have no faults',
    )
  })
})

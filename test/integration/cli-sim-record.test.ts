/**
 * A time range of a recording becomes a scenario with the same course: equal tasks start and end at the same
 * times and places.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createRecordingFiles } from '../../controller/adapters/recording/write-recording.ts'
import type { Event } from '../../controller/model/event.ts'
import { FaultWorld } from '../support/fault-world.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'

const folder = temporaryFolder()
const data = join(folder, 'recording')
const FROM = 1_000_000
/** Two tasks share a GPU with room for one of them, on each of two nodes; they are idle in turn. */
const TASKS = [
  { id: 'a', atMs: 1_000, phases: [[4_000, 40_000], [6_000, 0]] },
  { id: 'b', atMs: 2_000, phases: [[5_000, 30_000], [5_000, 0]] },
  { id: 'c', atMs: 12_000, phases: [[9_000, 0]] },
  { id: 'd', atMs: 14_000, phases: [[20_000, 5_000], [1_000, 0]] },
  { id: 'gone', atMs: 40_000, phases: [[50_000, 0]] },
] as const // prettier-ignore

let events: readonly Event[] = []

beforeAll(async () => {
  const tape = new RecordingInMemory()
  const world = new FaultWorld({
    nodes: 2,
    config: { default_vram_overcommit_percent: 100, run_lease_seconds: 15 },
    watch: tape.recorder,
  })
  await world.startAll()
  for (const { id, atMs, phases } of TASKS) {
    const work = { kind: 'phases', phases } as const
    world.at(atMs + 2_000, () => world.submit({ id, ms: 0, vramMib: 700, work, command: ['run', 'secret'] }))
  }
  world.at(30_000, () => world.controller.commands.putConfig({ idle_swap_out_seconds: 2 }, 'ann', () => {}))
  world.at(70_000, () => world.controller.commands.setCordon(world.idOf('n2'), true, 'ann', () => {}))
  world.at(75_000, () => world.controller.commands.cancelTask('gone', 'ann', () => {}))
  world.at(85_000, () => world.network.cutOff.add('n1'))
  world.at(95_000, () => world.network.cutOff.clear())
  await world.run(110_000)
  events = world.events
  const files = createRecordingFiles({
    dir: data,
    fileBytes: 1e6,
    maxFiles: 4,
    version: 'test',
    now: () => 0,
    onStopped: () => {},
  })
  for (const entry of tape.entries()) files.append(entry)
  await files.close()
})

/** First start, end and outcome of each task in the recorded world, in seconds since `from`. */
function course(from: number): ReadonlyMap<string, readonly [started: number, ended: number]> {
  const at = (kind: Event['kind'], id: string): number =>
    ((events.find((event) => event.kind === kind && event.taskId === id)?.at ?? NaN) - from) / 1000
  return new Map(TASKS.map(({ id }) => [id, [at('task_started', id), at('task_finished', id)]]))
}

async function recorded(...options: readonly string[]): Promise<string> {
  const file = join(folder, `${options.length}.scenario.json`)
  const made = await headroom(['sim', 'record', '--data', data, '--out', file, ...options])
  expect(made, made.stderr).toMatchObject({ code: 0 })
  expect(made.stderr).toMatch(/, 1 fault(;|\n)/)
  const valid = await headroom(['sim', 'validate', file])
  expect(valid, valid.stdout + valid.stderr).toMatchObject({ code: 0 })
  return file
}

/** Rows of tasks.csv by id, and the start instant of the run. */
async function ran(
  file: string,
): Promise<{ readonly from: number; readonly rows: ReadonlyMap<string, readonly string[]> }> {
  const out = `${file}.run`
  const { code, stderr } = await headroom(['sim', 'run', file, '--out', out])
  expect(code, stderr).toBe(0)
  const lines = readFileSync(join(out, 'tasks.csv'), 'utf8').trim().split('\n').slice(1)
  const { clock } = JSON.parse(readFileSync(file, 'utf8')) as { readonly clock: { readonly start: string } }
  return {
    from: Date.parse(clock.start),
    rows: new Map(lines.map((line) => [line.split(',')[0] as string, line.split(',')])),
  }
}

describe('headroom sim record', () => {
  it('makes a scenario of a complete recording, with equal starts and ends of tasks', async () => {
    const file = await recorded()
    const { from, rows } = await ran(file)
    for (const [id, [started, ended]] of course(from)) {
      const row = rows.get(id) ?? []
      expect(
        Math.abs(Number(row[3]) - started),
        `${id} started at ${row[3]}, recorded ${started}`,
      ).toBeLessThan(0.5)
      expect(Math.abs(Number(row[4]) - ended), `${id} ended at ${row[4]}, recorded ${ended}`).toBeLessThan(1)
    }
    expect(rows.get('gone')?.[1]).toBe('cancelled')
    const text = readFileSync(file, 'utf8')
    expect(text).not.toContain('secret')
    const { operator, faults } = JSON.parse(text) as Readonly<
      Record<'operator' | 'faults', readonly object[]>
    >
    expect(operator).toHaveLength(2)
    expect(faults).toEqual([expect.objectContaining({ partition: ['controller', 'n1'] })])
  })

  it('starts in the middle with the current state of all tasks', async () => {
    const middle = FROM + 25_000
    const file = await recorded(
      '--from',
      new Date(middle).toISOString(),
      '--to',
      new Date(FROM + 100_000).toISOString(),
      '--name',
      'middle',
    )
    const { from, rows } = await ran(file)
    expect(from).toBe(middle)
    const { workload, faults } = JSON.parse(readFileSync(file, 'utf8')) as Readonly<
      Record<'workload' | 'faults', readonly object[]>
    >
    expect(JSON.stringify(workload)).toContain('"placed"')
    expect(faults).toEqual([expect.objectContaining({ partition: ['controller', 'n1'] })])
    // `c` has ended by then.
    for (const id of ['a', 'b', 'd']) {
      const ended = course(from).get(id)?.[1] as number
      expect(
        Math.abs(Number(rows.get(id)?.[4]) - ended),
        `${id} ended at ${rows.get(id)?.[4]}, recorded ${ended}`,
      ).toBeLessThan(1.5)
    }
  })

  it('refuses an invalid range', async () => {
    const said = async (...options: readonly string[]) =>
      headroom(['sim', 'record', '--data', data, ...options])
    expect(await said('--from', 'yesterday')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--from is "yesterday"') as string,
    })
    expect(await said('--from', '1970-01-01T00:00:09Z', '--to', '1970-01-01T00:00:09Z')).toMatchObject({
      code: 2,
    })
    expect(await said('--name', 'No Name')).toMatchObject({ code: 2 })
    expect(await said('--from', '2030-01-01T00:00:00Z')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no node is up') as string,
    })
  })
})

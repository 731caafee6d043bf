/** The workload of a cluster from its own events. */
import { describe, expect, it } from 'vitest'
import type { ImportOptions } from '../../simulator/trace/import/importer.ts'
import { aloneMsOf, busyMsOf } from '../../simulator/trace/work.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { importText, type Imported } from '../support/imported.ts'

const folder = temporaryFolder()
const run = (lines: readonly string[] | string, options?: ImportOptions): Promise<Imported> =>
  importText(folder, 'headroom', lines, options)

/**
 * Output of `headroom events -o jsonl --after 0` of a controller with one real server: a task is swapped out
 * for another, which ends; a third never fits.
 */
const REAL = [
  '{"seq":1,"at":"2026-11-22T04:16:42.497Z","kind":"config_changed","task_id":null,"node_id":null,' +
    '"caused_by":null,"decision":null,"by":null,"data":{"revision":1,"idle_swap_out_seconds":3,' +
    '"default_vram_overcommit_percent":100}}',
  '{"seq":2,"at":"2026-11-22T04:16:42.533Z","kind":"task_submitted",' +
    '"task_id":"449df497-7328-4e7c-9c2e-911663d31926","node_id":null,"caused_by":null,"decision":null,' +
    '"by":null,"data":{"seq":1,"gpus":1,"vram_mib":16384,"mode":"shared","noswap":0,"priority":2}}',
  '{"seq":3,"at":"2026-11-22T04:16:44.966Z","kind":"node_registered","task_id":null,' +
    '"node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c","caused_by":null,"decision":null,"by":null,' +
    '"data":{"name":"local-1","gpus":1}}',
  '{"seq":4,"at":"2026-11-22T04:16:44.966Z","kind":"node_status","task_id":null,' +
    '"node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c","caused_by":null,"decision":null,"by":null,' +
    '"data":{"status":"up"}}',
  '{"seq":5,"at":"2026-11-22T04:16:44.968Z","kind":"task_placed",' +
    '"task_id":"449df497-7328-4e7c-9c2e-911663d31926","node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c",' +
    '"caused_by":2,"decision":5,"by":null,"data":{"attempt":1,"gpus":[0],"demand_mib":16384,' +
    '"when":"now"}}',
  '{"seq":6,"at":"2026-11-22T04:16:45.039Z","kind":"task_started",' +
    '"task_id":"449df497-7328-4e7c-9c2e-911663d31926","node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c",' +
    '"caused_by":5,"decision":null,"by":null,"data":{"attempt":1}}',
  '{"seq":7,"at":"2026-11-22T04:16:48.942Z","kind":"task_submitted",' +
    '"task_id":"f4eaf2d5-da38-4881-8d87-3e6e97e20964","node_id":null,"caused_by":null,"decision":null,' +
    '"by":null,"data":{"seq":2,"gpus":1,"vram_mib":16384,"mode":"shared","noswap":0,"priority":2}}',
  '{"seq":8,"at":"2026-11-22T04:16:49.334Z","kind":"task_submitted",' +
    '"task_id":"06019cea-5250-4474-9315-217f249df74c","node_id":null,"caused_by":null,"decision":null,' +
    '"by":null,"data":{"seq":3,"gpus":1,"vram_mib":40960,"mode":"shared","noswap":0,"priority":2}}',
  '{"seq":9,"at":"2026-11-22T04:16:50.329Z","kind":"swap_decided",' +
    '"task_id":"f4eaf2d5-da38-4881-8d87-3e6e97e20964","node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c",' +
    '"caused_by":7,"decision":9,"by":null,"data":{"decision":1,"for":"placement",' +
    '"victims":[{"id":"449df497-7328-4e7c-9c2e-911663d31926","gpu":0,"class":"non_p0"}],' +
    '"closed_rounds":[],"missing":[{"gpu":0,"mib":10240,"candidates":1}]}}',
  '{"seq":10,"at":"2026-11-22T04:16:50.329Z","kind":"task_residency",' +
    '"task_id":"449df497-7328-4e7c-9c2e-911663d31926","node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c",' +
    '"caused_by":9,"decision":null,"by":null,"data":{"residency":"swapping_out","generation":1,' +
    '"because":"for f4eaf2d5-da38-4881-8d87-3e6e97e20964"}}',
  '{"seq":11,"at":"2026-11-22T04:16:51.112Z","kind":"task_residency",' +
    '"task_id":"449df497-7328-4e7c-9c2e-911663d31926","node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c",' +
    '"caused_by":10,"decision":null,"by":null,"data":{"residency":"swapped_out","generation":2,' +
    '"because":null}}',
  '{"seq":12,"at":"2026-11-22T04:16:51.113Z","kind":"task_placed",' +
    '"task_id":"f4eaf2d5-da38-4881-8d87-3e6e97e20964","node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c",' +
    '"caused_by":9,"decision":12,"by":null,"data":{"attempt":1,"gpus":[0],"demand_mib":16384,' +
    '"when":"after_swap"}}',
  '{"seq":13,"at":"2026-11-22T04:16:51.147Z","kind":"task_started",' +
    '"task_id":"f4eaf2d5-da38-4881-8d87-3e6e97e20964","node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c",' +
    '"caused_by":12,"decision":null,"by":null,"data":{"attempt":1}}',
  '{"seq":14,"at":"2026-11-22T04:16:56.434Z","kind":"task_finished",' +
    '"task_id":"f4eaf2d5-da38-4881-8d87-3e6e97e20964","node_id":"2eb908c4-d9e7-5125-a7d8-4e434025689c",' +
    '"caused_by":13,"decision":null,"by":null,"data":{"state":"completed","attempt":1,"exit_code":0,' +
    '"reason":null}}',
]
const A = '449df497-7328-4e7c-9c2e-911663d31926'
const B = 'f4eaf2d5-da38-4881-8d87-3e6e97e20964'

const event = (seq: number, at: number, kind: string, task: string | null, data: object = {}): string =>
  JSON.stringify({ seq, at, kind, task, node: null, cause: null, data })
const submitted = (seq: number, at: number, task: string, data: object = {}): string =>
  event(seq, at, 'task_submitted', task, {
    seq,
    gpus: 1,
    vram_mib: 8000,
    mode: 'shared',
    noswap: 0,
    priority: 2,
    ...data,
  })
const moved = (seq: number, at: number, task: string, residency: string): string =>
  event(seq, at, 'task_residency', task, { residency })

describe('events of a real cluster', () => {
  it('yield the tasks that ended, and count open tasks and other events', async () => {
    const { tasks, header } = await run(REAL)
    expect(tasks).toEqual([
      {
        id: B, at: 0, gpus: 1, vram_mib: 16_384, gpu_mode: 'shared', priority: 2, noswap: 0, groups: [],
        owner: null,
        work: { kind: 'phases', phases: [[5287, 0]] }, alloc: [], cancel_at: null,
      },
    ]) // prettier-ignore
    expect(header).toMatchObject({
      rows: 14,
      dropped: { of_no_task: 3 },
      importer: { adjusted: { still_open_left_out: 2 }, synthetic: [] },
    })
    expect(header.importer?.options).toEqual({ seed: 0 })
  })
  it('are equal as an array, as a page of the API, and as server-sent events', async () => {
    const stream = REAL.map((line) => `: still here\nevent: event\nid: 1\ndata: ${line}\n`).join('\n')
    const { tasks } = await run(REAL)
    const asArray = JSON.stringify(
      REAL.map((line) => JSON.parse(line) as unknown),
      null,
      2,
    )
    for (const text of [asArray, `{"items":[${REAL.join(',')}],"next_after":14}`, `retry: 2000\n${stream}`]) {
      expect((await run(text)).tasks).toEqual(tasks)
    }
  })
  it('are idle from the swap-out until the task requested its return, without its wait', async () => {
    const on = (seq: number, second: string, kind: string, data: object): string =>
      JSON.stringify({
        seq,
        at: `2026-11-22T04:${second}Z`,
        kind,
        task_id: A,
        node_id: null,
        caused_by: null,
        decision: null,
        by: null,
        data,
      })
    const { tasks } = await run([
      ...REAL,
      on(15, '17:00.329', 'swap_in_decided', { waited_ms: 2000, mib: 16384 }),
      on(16, '17:00.329', 'task_residency', { residency: 'swapping_in' }),
      on(17, '17:01.000', 'task_residency', { residency: 'resident' }),
      on(18, '17:03.000', 'task_finished', { state: 'completed' }),
    ])
    // Started 45.039, swapping out 50.329, return requested 58.329, resident 61.000, ended 63.000.
    expect(tasks[0]).toMatchObject({ id: A, work: { phases: [[5290, 8000], [2000, 0]] } }) // prettier-ignore
  })
})

describe('a journal of events', () => {
  it('keeps the requested properties and the owner', async () => {
    const { tasks } = await run([
      submitted(1, 1000, 'x', { gpus: 4, vram_mib: 0, mode: 'exclusive', noswap: 1, priority: 0 }),
      event(2, 1500, 'task_started', 'x'),
      JSON.stringify({ ...JSON.parse(submitted(3, 2000, 'y')), by: 'ada' }),
      event(4, 2500, 'task_started', 'y'),
      event(5, 2600, 'task_finished', 'x', { state: 'completed' }),
      event(6, 2600, 'task_finished', 'y', { state: 'failed' }),
    ])
    expect(tasks).toMatchObject([
      { id: 'x', at: 0, gpus: 4, vram_mib: 0, gpu_mode: 'exclusive', noswap: 1, priority: 0, owner: null },
      { id: 'y', at: 1000, owner: 'ada' },
    ])
  })
  it('counts failed attempts, a lost server, and tasks that never ran', async () => {
    const { tasks, header } = await run([
      submitted(1, 0, 'again'),
      event(2, 10, 'task_started', 'again'),
      moved(3, 50, 'again', 'swapping_out'),
      event(4, 100, 'task_returned', 'again'),
      event(5, 200, 'task_started', 'again'),
      event(6, 500, 'task_finished', 'again', { state: 'lost' }),
      submitted(7, 600, 'never'),
      event(8, 700, 'task_finished', 'never', { state: 'cancelled' }),
      submitted(9, 800, 'at once'),
      event(10, 900, 'task_started', 'at once'),
      event(11, 900, 'task_finished', 'at once', { state: 'completed' }),
    ])
    expect(tasks.map(({ id, work }) => [id, work])).toEqual([
      ['again', { kind: 'phases', phases: [[300, 0]] }],
      ['at once', { kind: 'phases', phases: [[1, 0]] }],
    ])
    expect(header.importer?.adjusted).toEqual({
      attempts_left_out: 1,
      lost_taken_as_ended: 1,
      never_started_left_out: 1,
    })
  })
  it('handles a cancelled swap-out, a manual swap-out, and an end while swapped out', async () => {
    const { tasks } = await run([
      submitted(1, 0, 'off'),
      event(2, 0, 'task_started', 'off'),
      moved(3, 100, 'off', 'swapping_out'),
      moved(4, 130, 'off', 'resident'),
      event(5, 200, 'task_finished', 'off', { state: 'completed' }),
      submitted(6, 200, 'out'),
      event(7, 200, 'task_started', 'out'),
      moved(8, 300, 'out', 'swapping_out'),
      moved(9, 310, 'out', 'swapped_out'),
      event(10, 900, 'task_finished', 'out', { state: 'cancelled' }),
      submitted(11, 1000, 'hand'),
      event(12, 1000, 'task_started', 'hand'),
      moved(13, 1100, 'hand', 'swapping_out'),
      event(14, 1500, 'swap_in_decided', 'hand', { waited_ms: 9999 }),
      moved(15, 1600, 'hand', 'resident'),
      event(16, 1700, 'task_finished', 'hand', { state: 'completed' }),
    ])
    expect(tasks.map(({ id, work }) => [id, work])).toEqual([
      ['off', { kind: 'phases', phases: [[100, 30], [70, 0]] }],
      ['out', { kind: 'phases', phases: [[100, 600]] }],
      ['hand', { kind: 'phases', phases: [[100, 0], [100, 0]] }],
    ]) // prettier-ignore
  })
  it('uses an activity model on request', async () => {
    const lines = [
      submitted(1, 0, 'x'),
      event(2, 0, 'task_started', 'x'),
      event(3, 3_600_000, 'task_finished', 'x', { state: 'completed' }),
    ]
    const { tasks, header } = await run(lines, { activityModel: 'serving', seed: 2 })
    expect(aloneMsOf(tasks[0]!.work)).toBe(3_600_000)
    expect(busyMsOf(tasks[0]!.work)).toBeLessThan(3_600_000)
    expect(header.importer).toMatchObject({ synthetic: ['activity'], options: { activity_model: 'serving' } })
  })
  it('counts unusable events, and refuses text that is not JSON', async () => {
    const { header, tasks } = await run([
      '{"chain":"00"}',
      submitted(1, 0, 'kept'),
      event(2, 5, 'task_started', 'kept'),
      event(2, 5, 'task_started', 'kept'),
      event(3, 6, 'task_started', 'older'),
      submitted(4, 6, 'odd', { gpus: 1.5 }),
      submitted(5, 6, 'much', { gpus: 2000 }),
      submitted(6, 6, 'none', { vram_mib: 0 }),
      JSON.stringify({ seq: 7, at: 'soon', kind: 'task_submitted', task: 'x', data: {} }),
      '7',
      event(8, 10, 'task_finished', 'kept', { state: 'completed' }),
      event(9, 10, 'node_status', null),
    ])
    expect(tasks.map(({ id }) => id)).toEqual(['kept'])
    expect(header.dropped).toEqual({
      of_no_task: 3,
      duplicate_event: 1,
      began_before_the_log: 1,
      bad_submission: 3,
      bad_at: 1,
    })
    await expect(run(['{"seq":1', ''])).rejects.toThrow(/headroom\.txt:1: is not JSON: /)
    await expect(run('[{"seq":1},{"seq":NaN}]')).rejects.toThrow(/headroom\.txt:1: is not JSON: /)
    await expect(run('')).rejects.toThrow('headroom.txt: has no row')
  })
})

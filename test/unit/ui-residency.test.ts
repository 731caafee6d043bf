import { describe, expect, test } from 'vitest'
import type { DecisionBody } from '../../controller/api/observe/decision-schema.ts'
import type { EventBody } from '../../controller/api/observe/event-schema.ts'
import type { TaskBody } from '../../controller/api/tasks/schema.ts'
import { barAt, LANE_PX, layoutGantt, type GanttBar } from '../../ui/charts/gantt-layout.ts'
import { residencyBars, type ResidencyFacts } from '../../ui/pages/nodes/residency.ts'

const at = (second: number): string => new Date(second * 1000).toISOString()

function event(
  second: number,
  kind: EventBody['kind'],
  data: EventBody['data'] = {},
  more: Partial<EventBody> = {},
): EventBody {
  return {
    seq: second,
    at: at(second),
    kind,
    task_id: 'a',
    node_id: 'n',
    caused_by: null,
    decision: null,
    by: null,
    data,
    ...more,
  }
}

function facts(more: Partial<ResidencyFacts>): ResidencyFacts {
  return {
    events: [],
    decisions: [],
    tasks: [],
    finished: [],
    gpuIndexes: [0, 1],
    from: 0,
    to: 100_000,
    ...more,
  }
}

function placedTask(
  more: Partial<TaskBody['placement'] & object>,
  residency: TaskBody['residency'] = 'resident',
): TaskBody {
  const placement = {
    node_id: 'n',
    gpus: [0],
    wants_gpu: true,
    started_at: at(1),
    idle_since: at(1),
    ...more,
  }
  return { id: 'a', name: 'train', residency, placement } as TaskBody
}

const shown = (bars: ReturnType<typeof residencyBars>) =>
  bars.map(({ row, kind, from, to, decision }) => [row, kind, from / 1000, to / 1000, decision])

describe('the bars of the residency chart', () => {
  test('run from placement to end, with the decision behind each', () => {
    const events = [
      event(10, 'task_placed', { gpus: [1] }, { decision: 10 }),
      event(12, 'task_started'),
      event(40, 'task_residency', { residency: 'swapping_out' }, { caused_by: 39 }),
      event(42, 'task_residency', { residency: 'swapped_out' }, { caused_by: 40 }),
      event(60, 'task_residency', { residency: 'swapping_in' }, { caused_by: 59 }),
      event(62, 'task_residency', { residency: 'resident' }, { caused_by: 60 }),
      event(80, 'task_finished'),
    ]
    expect(shown(residencyBars(facts({ events })))).toEqual([
      [1, 'moving', 10, 12, 10],
      [1, 'active', 12, 40, 10],
      [1, 'moving', 40, 42, 39],
      [1, 'out', 42, 60, 39],
      [1, 'moving', 60, 62, 59],
      [1, 'active', 62, 80, 59],
    ])
  })

  test('show a task without events in its current state on each of its GPUs', () => {
    const task = placedTask({ gpus: [0, 1], wants_gpu: false, idle_since: at(70) })
    expect(shown(residencyBars(facts({ tasks: [task] })))).toEqual([
      [0, 'active', 0, 70, null],
      [0, 'idle', 70, 100, null],
      [1, 'active', 0, 70, null],
      [1, 'idle', 70, 100, null],
    ])
    expect(shown(residencyBars(facts({ tasks: [placedTask({}, 'swapped_out')] })))).toEqual([
      [0, 'out', 0, 100, null],
    ])
  })

  test('show idle time that decisions saw, merged over decisions', () => {
    const seen = (second: number, idle: number) =>
      ({
        kind: 'swap_out',
        task_id: 'b',
        at: at(second),
        candidates: [{ task_id: 'a', idle_seconds: idle }],
      }) as unknown as DecisionBody
    const bars = residencyBars(facts({ tasks: [placedTask({})], decisions: [seen(50, 20), seen(40, 10)] }))
    expect(shown(bars)).toEqual([
      [0, 'active', 0, 30, null],
      [0, 'idle', 30, 50, null],
      [0, 'active', 50, 100, null],
    ])
  })

  test('show the state before the hour according to the first event or the number of swaps', () => {
    const before = (residency: string) =>
      shown(
        residencyBars(
          facts({ events: [event(30, 'task_residency', { residency })], tasks: [placedTask({})] }),
        ),
      )[0]?.[1]
    expect(['swapping_out', 'swapped_out', 'swapping_in', 'resident'].map(before)).toEqual([
      'active',
      'moving',
      'out',
      'moving',
    ])
    const decisions = [
      { kind: 'placement', task_id: 'a', task_name: 'train', gpus: [0], candidates: [] },
    ] as unknown as DecisionBody[]
    const events = [event(30, 'task_finished')]
    expect(shown(residencyBars(facts({ events, decisions })))).toEqual([[0, 'unknown', 0, 30, null]])
    const finished = [{ id: 'a', name: 'train', swap_outs: 0, first_started_at: at(1) } as TaskBody]
    expect(shown(residencyBars(facts({ events, decisions, finished })))).toEqual([[0, 'active', 0, 30, null]])
  })

  test('leave out requeued tasks and tasks without a known GPU', () => {
    const events = [event(10, 'task_started'), event(20, 'task_returned')]
    expect(residencyBars(facts({ events }))).toEqual([])
    expect(
      shown(
        residencyBars(
          facts({
            events,
            decisions: [
              { kind: 'placement', task_id: 'a', gpus: [0], candidates: [] },
            ] as unknown as DecisionBody[],
          }),
        ),
      ),
    ).toEqual([
      [0, 'moving', 0, 10, null],
      [0, 'active', 10, 20, null],
    ])
  })
})

describe('the layout of residency bars', () => {
  const bar = (laneKey: string, from: number, to: number, row = 0): GanttBar => ({
    row,
    laneKey,
    from,
    to,
    kind: 'active',
  })

  test('has separate lanes for concurrent tasks, and reuses free lanes', () => {
    const layout = layoutGantt([bar('a', 0, 50), bar('b', 10, 100), bar('c', 50, 100), bar('d', 0, 10, 1)], {
      from: 0,
      to: 100,
      width: 200,
      rowCount: 2,
    })
    expect([...layout.y]).toEqual([0, LANE_PX, 0, layout.rowTops[1]])
    expect([...layout.x]).toEqual([0, 20, 100, 0])
    expect([...layout.w]).toEqual([100, 180, 100, 20])
    expect(barAt(layout, 30, 2)).toBe(0)
    expect(barAt(layout, 30, LANE_PX + 2)).toBe(1)
    expect(barAt(layout, 10, LANE_PX + 2)).toBe(null)
  })

  test('clips bars at the frame, and keeps every bar visible', () => {
    const layout = layoutGantt([bar('a', -50, 200), bar('b', 10, 10)], {
      from: 0,
      to: 100,
      width: 100,
      rowCount: 1,
    })
    expect([layout.x[0], layout.w[0], layout.w[1]]).toEqual([0, 100, 1])
  })
})

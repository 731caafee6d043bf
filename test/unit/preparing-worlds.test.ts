/** Simulated nodes that need time to get an image (`prepare_seconds`). */
import { describe, expect, it } from 'vitest'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { runScenario } from '../../simulator/run/run.ts'

const MINUTE = 60_000

interface Asked {
  readonly prepareSeconds: number
  readonly nodes?: number
  readonly workload: readonly string[]
  readonly faults?: string
  readonly areHeartbeatsEnacted?: boolean
}

/** Returns the minute at which each task started. All of them end. */
async function starts(asked: Asked): Promise<Readonly<Record<string, number | null>>> {
  const { prepareSeconds, nodes = 1, workload, faults, areHeartbeatsEnacted = false } = asked
  const text = `scenario: preparing
version: 1
clock: { until: 5h, drain: true }
fleet:
  - { name: 'n{i}', count: ${nodes}, gpu: { model: A, vram_mib: 24000 }, prepare_seconds: ${prepareSeconds} }
workload:
${workload.map((task) => `  - { task: { vram_mib: 20000, command: [train], run: 10m, ${task} } }`).join('\n')}
${faults === undefined ? '' : `faults:\n  - ${faults}\n`}`
  const { scenario } = loadScenario({ text, baseDir: '.' })
  const started: [string, number | null][] = []
  let firstAt = Infinity
  const { result } = await runScenario(
    scenario,
    { scenarioSha256: null, traceSha256: null, version: 'test' },
    {
      areHeartbeatsEnacted,
      onOutcome: ({ id, submittedAt, startedAt }) => {
        firstAt = Math.min(firstAt, submittedAt)
        started.push([id, startedAt])
      },
    },
  )
  expect(result.metrics.tasks).toMatchObject({ completed: workload.length, unfinished: 0 })
  const minute = (at: number | null) => (at === null ? null : Math.round((at - firstAt) / MINUTE))
  return Object.fromEntries(started.map(([id, at]) => [id, minute(at)]))
}

const IMAGE = "image: 'team/train:1'"

describe.each([false, true])('in a world (every heartbeat: %s)', (areHeartbeatsEnacted) => {
  const minutes = (asked: Asked) => starts({ ...asked, areHeartbeatsEnacted })

  it('a task whose image arrives slowly holds no VRAM: another one runs meanwhile', async () => {
    const workload = [`id: slow, at: 0s, ${IMAGE}`, 'id: other, at: 1m']
    expect(await minutes({ prepareSeconds: 300, workload })).toEqual({ slow: 11, other: 1 })
    expect(await minutes({ prepareSeconds: 0, workload })).toEqual({ slow: 0, other: 10 })
  })

  it('an image that is there is used at once by the next task, on that node', async () => {
    const workload = [`id: first, at: 0s, ${IMAGE}`, `id: second, at: 30m, ${IMAGE}`]
    expect(await minutes({ prepareSeconds: 300, nodes: 2, workload })).toEqual({ first: 5, second: 30 })
  })

  it('a controller that dies meanwhile loses nothing: the node continues', async () => {
    const workload = [`id: slow, at: 0s, ${IMAGE}`]
    const faults = '{ at: 2m, restart: controller, for: 30s }'
    expect(await minutes({ prepareSeconds: 300, workload, faults })).toEqual({ slow: 5 })
  })

  it('a server that dies meanwhile begins again', async () => {
    const workload = [`id: slow, at: 0s, ${IMAGE}`]
    const faults = '{ at: 2m, bounce: n0 }'
    const { slow = null } = await minutes({ prepareSeconds: 300, workload, faults })
    expect(slow).toBeGreaterThanOrEqual(7)
    expect(slow).toBeLessThanOrEqual(8)
  })
})

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { summaryFields } from '../../cli/status/status.ts'
import { ALARM_CODES } from '../../controller/query/alarms.ts'
import type { Summary } from '../../clients/typescript/client.ts'
import { realEngine } from '../support/real-engine.ts'
import { presentSummary } from '../../controller/api/observe/present-summary.ts'

const RULES = readFileSync('deploy/prometheus/headroom.rules.yaml', 'utf8')
const OPERATING = readFileSync('docs/operating.md', 'utf8')
const METRICS = readFileSync('docs/metrics.md', 'utf8')

describe('every alarm', () => {
  it.each(ALARM_CODES)(
    'The alarm %s has a Prometheus rule, a row in operating.md, and a mention next to its metric',
    (code) => {
      expect(RULES).toContain(`expr: headroom_alarm{alarm="${code}"} == 1`)
      expect(OPERATING).toContain(`\n| ${code} | `)
      expect(METRICS).toMatch(new RegExp(`headroom_alarm.*${code}`))
    },
  )
})

describe('a raised alarm', async () => {
  const world = await realEngine()
  const views = {
    ...world.views,
    alarms: () => [{ code: 'BROKER_AWAY', since: 0, nodeIds: [], detail: 'It is away.' }] as const,
  }
  const summary = presentSummary({
    views,
    fleet: 'live',
    brokerUrls: [],
    window: null,
    pendingByReason: { counted: 0, of: 0, is_estimate: false, reasons: [] },
    recentEnds: null,
    controllers: null,
    yesterday: { utilization: null, starvation: null, pending: null },
  })

  it('appears in the summary', () => {
    expect(summary.alarms).toEqual([
      { code: 'BROKER_AWAY', since: '1970-01-01T00:00:00.000Z', nodes: [], detail: 'It is away.' },
    ])
  })

  it('is the first line of the status, and without alarms that line is missing', () => {
    expect(summaryFields(summary as Summary)[0]).toEqual(['alarms', ['BROKER_AWAY: It is away.']])
    expect(summaryFields({ ...summary, alarms: [] } as Summary)[0]?.[0]).toBe('nodes')
  })
})

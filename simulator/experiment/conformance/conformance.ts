/**
 * Checks whether a GPU server conforms to protocol version 1. Each rule that is observable from outside is
 * tried and reported as kept or broken. The server needs one GPU with a little free memory and without other
 * tasks; it receives leases only, so it need not run commands.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import type { Examiner } from './examiner.ts'
import type { Finding, Rule } from './rule.ts'
import { CHANNEL_RULES } from './rules-of-channels.ts'
import { COMMAND_RULES } from './rules-of-commands.ts'
import { FAULT_RULES } from './rules-under-faults.ts'
import { LIFE_RULES } from './rules-of-life.ts'
import { PREPARING_RULES } from './rules-of-preparing.ts'
import { PRESENCE_RULES } from './rules-of-presence.ts'
import { STOP_RULES } from './rules-of-stops.ts'

export interface RuleReport {
  readonly rule: string
  readonly claim: string
  readonly verdict: 'kept' | 'broken' | 'not_tested'
  readonly detail: string | null
}

/** In this order: each rule leaves the server empty and with a lease. */
export const RULES: readonly Rule[] = [
  ...PRESENCE_RULES,
  ...COMMAND_RULES,
  ...STOP_RULES,
  ...LIFE_RULES,
  ...PREPARING_RULES,
  ...CHANNEL_RULES,
  ...FAULT_RULES,
]

/** Time within which a running server must be heard. */
const HEARD_WITHIN_MS: DurationMs = 90_000

/** @param onReport called with one line at a time */
export async function examineServer(
  e: Examiner,
  onReport: (report: RuleReport) => void,
  rules = RULES,
): Promise<readonly RuleReport[]> {
  const reports: RuleReport[] = []
  const add = (report: RuleReport): void => {
    reports.push(report)
    onReport(report)
  }
  e.begin()
  const isThere = await e.until(() => e.hellos + e.heartbeats > 0, HEARD_WITHIN_MS)
  if (!isThere) {
    add({
      rule: 'R6',
      claim: 'the server is heard',
      verdict: 'broken',
      detail: `nothing was heard of it in ${HEARD_WITHIN_MS / 1000} s`,
    })
  } else {
    await askForFeatures(e)
    for (const { rule, claim, feature, examine } of rules) {
      const before = e.violations.length
      const isExamined = feature === undefined || e.features.includes(feature)
      const finding = isExamined ? await examine(e) : { notTested: `the server has no feature ${feature}` }
      const violation = e.violations[before]
      add({ rule, claim, ...verdictOf(violation ?? finding) })
    }
  }
  e.end()
  return reports
}

/** Only a hello names them, which a server that runs already does not repeat. */
async function askForFeatures(e: Examiner): Promise<void> {
  if (e.hellos > 0) return
  e.nextAnswer = { op: 'refused', reason: 'unknown_node' }
  await e.until(() => e.hellos > 0, HEARD_WITHIN_MS)
}

function verdictOf(finding: Finding): Pick<RuleReport, 'verdict' | 'detail'> {
  if (finding === null) return { verdict: 'kept', detail: null }
  if (typeof finding === 'string') return { verdict: 'broken', detail: finding }
  return { verdict: 'not_tested', detail: finding.notTested }
}

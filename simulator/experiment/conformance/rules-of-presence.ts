/** How a server identifies itself (R6, R11). */
import type { Rule } from './rule.ts'
import { SOON_MS } from './orders.ts'

export const PRESENCE_RULES: readonly Rule[] = [
  {
    rule: 'R6',
    claim: 'a server that the controller does not know says hello again',
    async examine(e) {
      const before = e.hellos
      e.nextAnswer = { op: 'refused', reason: 'unknown_node' }
      if (!(await e.until(() => e.hellos > before, SOON_MS)))
        return `no hello within ${SOON_MS / 1000} s of 'unknown_node'`
      return null
    },
  },
  {
    rule: 'R6',
    claim: 'heartbeats come about as often as the settings say, each with a higher number',
    async examine(e) {
      const { heartbeat_ms: everyMs } = e.settings
      const before = e.heartbeats
      await e.pass(10 * everyMs)
      const count = e.heartbeats - before
      // Upper bound: ± 20% each, and one at either end. Lower bound: a busy host sends late; a server that
      // ignores settings sends none or one.
      return count >= 3 && count <= 15 ? null : `${count} heartbeats in ten times ${everyMs} ms`
    },
  },
  {
    rule: 'R6',
    claim: 'a state_reset makes it restart above that counter',
    async examine(e) {
      const counter = (e.snapshot?.boot.counter ?? 0) + 10
      e.nextAnswer = { op: 'state_reset', counter_above: counter }
      const isAbove = await e.until(() => (e.snapshot?.boot.counter ?? 0) > counter, SOON_MS)
      return isAbove
        ? null
        : `its boot counter is ${e.snapshot?.boot.counter ?? 'unknown'}, not above ${counter}`
    },
  },
]

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  END_CODES,
  END_SENTENCES,
  endCodeOf,
  endSentenceOf,
  type EndCode,
} from '../../controller/model/end-reason.ts'
import { MEMORY_LIMIT_REACHED, vramLimitWords } from '../../protocol/resource-limits.ts'

const ended = { state: 'lost', exitCode: null, endReason: null } as const

describe('the end reason of a task', () => {
  it('is one of a closed list of codes, all of which docs/events.md explains', () => {
    const rows = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8').split('\n')
    const section = rows.slice(rows.indexOf('## Why a task ended'), rows.indexOf('## Following'))
    const documented = section
      .map((row) => /^\| `(\w+)` \| [\w, ]+ \| (.+) \|$/.exec(row))
      .filter((row) => row !== null)
    expect(documented.map(([, code, sentence]) => [code, sentence])).toEqual(
      END_CODES.map((code) => [code, END_SENTENCES[code]]),
    )
  })

  it('is null exactly while the task has not ended', () => {
    expect(endCodeOf({ ...ended, state: 'running' })).toBe(null)
    expect(endSentenceOf({ ...ended, state: 'pending' })).toBe(null)
    for (const state of ['completed', 'failed', 'cancelled', 'lost'] as const) {
      expect(endCodeOf({ ...ended, state })).not.toBe(null)
      expect(endSentenceOf({ ...ended, state })).not.toBe(null)
    }
  })

  it.each([
    [{ ...ended, state: 'completed', exitCode: 0 }, 'completed', 'exit code 0'],
    [
      { ...ended, state: 'failed', endCode: 'REQUEUE_LIMIT' as EndCode, endReason: 'old spelling' },
      'requeue_limit',
      'old spelling',
    ],
    [{ ...ended, state: 'failed', exitCode: 3 }, 'exit_code', 'exit code 3'],
    [
      { ...ended, state: 'failed', exitCode: 137, endReason: MEMORY_LIMIT_REACHED },
      'memory_limit',
      MEMORY_LIMIT_REACHED,
    ],
    [
      { ...ended, state: 'failed', exitCode: 137, endReason: vramLimitWords(51, 50) },
      'vram_limit',
      vramLimitWords(51, 50),
    ],
    [{ ...ended, state: 'failed', exitCode: 139, endReason: 'signal SIGSEGV' }, 'signal', 'signal SIGSEGV'],
    [
      { ...ended, state: 'failed', endReason: 'max_runtime_seconds (2) is over' },
      'max_runtime',
      'max_runtime_seconds (2) is over',
    ],
    [{ ...ended, state: 'cancelled', endReason: 'cancelled by alice' }, 'cancelled', 'cancelled by alice'],
    [{ ...ended, state: 'cancelled', endReason: 'lease_expired' }, 'lease_expired', 'lease_expired'],
    [ended, 'unknown_before_upgrade', END_SENTENCES.unknown_before_upgrade],
  ] as const)('of a record without a code is derived from its fields: %j', (record, code, sentence) => {
    expect([endCodeOf(record), endSentenceOf(record)]).toEqual([code, sentence])
  })
})

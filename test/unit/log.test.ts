import { describe, expect, test } from 'vitest'
import { createLog, logText } from '../../services/log.ts'

function linesOf(write: (log: ReturnType<typeof createLog>) => void): string[] {
  const lines: string[] = []
  write(createLog('info', { write: (line) => lines.push(line) }))
  return lines
}

describe('the log on a terminal', () => {
  test('has a line of text with the time of day, the level, the message and the other facts', () => {
    const [line = ''] = linesOf((log) => log.warn({ node: 'n1', lost: 2 }, 'two messages were lost'))
    expect(logText(line)).toMatch(/^\d\d:\d\d:\d\d warn {2}two messages were lost node="n1" lost=2\n$/)
  })

  test('hides what JSON lines hide', () => {
    const [line = ''] = linesOf((log) => log.info({ token: 'hr_secret' }, 'a request'))
    expect(logText(line)).toMatch(/ info {2}a request token="…"\n$/)
  })

  test('shows an error without a message of its own', () => {
    const [line = ''] = linesOf((log) => log.error(new Error('disk full')))
    expect(logText(line)).toContain('error disk full err={"type":"Error","message":"disk full"')
  })
})

/** Converts values of settings to what the interface accepts. The controller checks ranges. */
import { DURATION_FORMAT, parseDuration } from '../../simulator/document/quantity.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { parseVram, VRAM_FORMAT } from '../../clients/typescript/vram-size.ts'

/**
 * `5m` for a field in seconds, `2Gi` for a field in MiB, whole numbers, `null`; everything else stays text.
 */
export function settingValue(name: string, text: string): number | string | null {
  if (text === 'null') return null
  if (/^-?\d{1,15}$/.test(text)) return Number(text)
  if (name.endsWith('_seconds')) return secondsOf(name, text)
  if (name.endsWith('_mib')) {
    const mib = parseVram(text)
    if (mib === null)
      throw new UsageError(`${name} must be a number of MiB or ${VRAM_FORMAT}, got ${JSON.stringify(text)}`)
    return mib
  }
  return text
}

function secondsOf(name: string, text: string): number {
  const ms = parseDuration(text)
  if (ms === null || ms % 1000 !== 0) {
    throw new UsageError(
      `${name} must be a number of seconds or ${DURATION_FORMAT}, got ${JSON.stringify(text)}`,
    )
  }
  return ms / 1000
}

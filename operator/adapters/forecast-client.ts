/** Admission asks the operator what a policy would change. */
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { type AskedPolicy, unsimulated } from '../contract/policy-twin-lines.ts'
import { CallerClient, type CallerClientOptions } from './caller-client.ts'
import { FORECAST_PATH } from './extender-server.ts'

export interface ForecastClientOptions extends CallerClientOptions {
  readonly log: (line: string) => void
  readonly withinMs?: DurationMs
}

/** The API server waits 10 s. */
const WITHIN_MS: DurationMs = 8_000
const MAX_ANSWER_BYTES = 16_384

/** Never rejects: without an answer, the line says why. A connection of its own reaches the leader of now. */
export async function askedForecast(
  { log, withinMs = WITHIN_MS, ...options }: ForecastClientOptions,
  asked: AskedPolicy,
): Promise<readonly string[]> {
  const client = new CallerClient(options)
  try {
    const answer = await client.post({
      ...{ path: FORECAST_PATH, body: asked, timeoutMs: withinMs, maxAnswerBytes: MAX_ANSWER_BYTES },
      signal: AbortSignal.timeout(withinMs),
    })
    const { lines } = answer as { readonly lines?: unknown }
    if (!Array.isArray(lines)) throw new Error('the answer has no lines')
    return lines.map(String)
  } catch (error) {
    log(`no forecast by the operator: ${errorText(error)}`)
    return [unsimulated('the operator did not answer')]
  } finally {
    client.close()
  }
}

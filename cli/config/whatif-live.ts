/** `headroom whatif` for the cluster of a controller: the forecast of each percentage, one line each. */
import { EXIT_OK } from '../../services/exit-codes.ts'
import type { ChangedConfig } from '../../clients/typescript/client.ts'
import { openClient, type ServerOption } from '../command/session.ts'
import { visible } from '../output/terminal-text.ts'
import { startsWords } from './config.ts'

export interface LiveWhatifOptions extends ServerOption {
  readonly overcommit: readonly number[]
  readonly json?: boolean
}

type Impact = NonNullable<ChangedConfig['impact']>

/** Changes nothing; one percentage after the other, as the controller makes one forecast at a time. */
export async function whatifLive({
  overcommit,
  json = false,
  ...server
}: LiveWhatifOptions): Promise<number> {
  const client = openClient(server)
  const { default_vram_overcommit_percent: now } = await client.config.get()
  if (!json) process.stdout.write(`Overcommit is ${now}% now; nothing is changed.\n`)
  for (const percent of overcommit) {
    const { impact } = await client.config.set({ default_vram_overcommit_percent: percent }, { dryRun: true })
    if (impact === undefined) throw new Error('broken invariant: the answer to a dry run has no impact')
    const line = json
      ? JSON.stringify({ overcommit_percent: percent, impact })
      : visible(`${`${percent}%`.padStart(5)}  ${sentencesOf(impact)}`)
    process.stdout.write(`${line}\n`)
  }
  return EXIT_OK
}

function sentencesOf({
  next_cycle: cycle,
  pending,
  forecast,
  forecast_unavailable_because: why,
}: Impact): string {
  const words = cycle === null ? '' : startsWords(cycle, pending.of)
  const atOnce = cycle === null ? '' : `${words.charAt(0).toUpperCase()}${words.slice(1)}. `
  return `${atOnce}${forecast === null ? `No forecast: ${why}` : forecast.sentence}`
}

/** Texts for the controllers of a store. Pure. */
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'

type Controllers = NonNullable<SummaryBody['controllers']>

export function controllersWords({ leader, standbys }: Controllers): {
  readonly text: string
  readonly meaning: string
} {
  if (standbys === null)
    return {
      text: `${leader} leads`,
      meaning: 'The store does not respond: the number of standbys is unknown.',
    }
  if (standbys === 0)
    return {
      text: `${leader} leads, no standby`,
      meaning: 'No standby is available: no controller can take over if this one fails.',
    }
  const count = `${standbys} ${standbys === 1 ? 'standby' : 'standbys'}`
  return { text: `${leader} leads, ${count}`, meaning: `${count} can take over if this controller fails.` }
}

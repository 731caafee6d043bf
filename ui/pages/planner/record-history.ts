/** The tasks of the last hours, as the events of this cluster tell them: the body of a trace. */
import type { EventPage } from '../../../controller/api/observe/event-schema.ts'
import type { ApiClient } from '../../api/client.ts'
import { whole } from '../../format/figures.ts'

/** The events that the importer of Headroom's own events reads. */
const KINDS = 'task_submitted,task_started,task_returned,task_finished,task_residency,swap_in_decided'
const PAGE = 200
const MAX_EVENTS = 100_000
const HOUR_MS = 3_600_000

/** @throws Error if nothing ended in that time, or too much happened */
export async function recordHistory(
  api: ApiClient,
  hours: number,
  onProgress: (words: string) => void,
): Promise<Blob> {
  const since = new Date(Date.now() - hours * HOUR_MS).toISOString()
  const lines: string[] = []
  let after = 0
  for (let read = 0; ;) {
    const page = await api.get<EventPage>('/events', { after, since, kind: KINDS, limit: PAGE })
    if (page.items.length > 0) lines.push(JSON.stringify(page))
    read += page.items.length
    onProgress(`${whole(read)} events read…`)
    if (page.items.length < PAGE) break
    if (read >= MAX_EVENTS)
      throw new Error(
        `The history has more than ${whole(MAX_EVENTS)} events. Choose a shorter period, or use headroom ` +
          'sim record.',
      )
    after = page.items.at(-1)?.seq ?? after
  }
  if (lines.length === 0)
    throw new Error('No task was submitted, ran or ended in this cluster during that period.')
  return new Blob([`${lines.join('\n')}\n`])
}

/** Events, for people. Pure. */
import type { EventBody } from '../../controller/api/schema/event.ts'

export function kindWords(kind: string): string {
  return kind.replace(/^task_/, '').replaceAll('_', ' ')
}

/** `residency: swapped out, because: victim`; nested values as JSON. */
export function factWords(data: EventBody['data']): string {
  return Object.entries(data)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
    .join(', ')
}

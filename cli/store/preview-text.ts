/** Formats what a restore would lose. */
import type { LostRecords, RestorePreview } from '../../controller/adapters/sqlite/restore-preview.ts'
import { markText } from '../../controller/adapters/sqlite/store-mark.ts'
import { visible } from '../output/terminal-text.ts'

export function previewText(backup: string, path: string, preview: RestorePreview): string {
  const lines = [
    `backup  ${backup}: epoch ${preview.backup.epoch}, ${lastEvent(preview.backup)}`,
    storeLine(path, preview),
    preview.mark === null ? 'mark    none' : `mark    ${markText(preview.mark)}`,
    ...lossLines(preview),
    'epoch   the restored store continues above every epoch known here, in recovery',
    'dry run: nothing was changed',
  ]
  return `${lines.join('\n')}\n`
}

function storeLine(path: string, { store, unreadable }: RestorePreview): string {
  if (unreadable !== null) return `store   cannot be read: ${unreadable}`
  if (store === null) return `store   none at ${path}`
  return `store   ${path}: epoch ${store.epoch}, ${lastEvent(store)}`
}

function lastEvent({ eventSeq, lastEventAt }: RestorePreview['backup']): string {
  return lastEventAt === null
    ? `last event ${eventSeq}`
    : `last event ${eventSeq} at ${new Date(lastEventAt).toISOString()}`
}

function lossLines({ backup, store, mark, events, isOtherHistory, lost }: RestorePreview): readonly string[] {
  if (store === null && mark === null)
    return ['lost    not known: there is no store and no mark to compare with']
  const to = Math.max(store?.epoch ?? 0, mark?.epoch ?? 0)
  const lines = [
    events === 0
      ? 'lost    0 events'
      : `lost    ${events} events, ${backup.eventSeq + 1} to ${backup.eventSeq + events}`,
    to > backup.epoch ? `lost    changes of epochs ${backup.epoch} to ${to}` : `lost    0 epochs`,
  ]
  if (isOtherHistory)
    lines.unshift('lost    the backup has another history than the store: everything that only the store has')
  return [...lines, ...(lost === null ? [] : recordLines(lost))]
}

function recordLines({ tasks, named, reopened, configRevisions }: LostRecords): readonly string[] {
  const more = tasks > named.length ? [`          … and ${tasks - named.length} more`] : []
  return [
    `lost    ${tasks} tasks submitted since`,
    ...named.map(({ id, name, state }) => `          ${id} ${state} ${visible(name)}`),
    ...more,
    `lost    the ends of ${reopened} tasks that ended since`,
    `lost    ${configRevisions} configuration revisions`,
  ]
}

import type { ConfigFields } from '../../controller/model/config.ts'
import type { ChangedConfigBody, ConfigBody, RevisionPage } from '../../controller/api/config/schema.ts'
import type { CallOptions, DryRun } from './simulations.ts'
import { pathSegment, type Transport } from './transport.ts'

/** Settings of the cluster. */
export function configOf(transport: Transport) {
  return {
    get: ({ signal }: CallOptions = {}) =>
      transport.json<ConfigBody>({ method: 'GET', path: '/config', signal }),
    /**
     * Fields that are absent keep their values; from then on all settings are stored. With `dryRun` returns
     * the impact instead.
     */
    set: (change: Partial<ConfigFields>, { dryRun, signal }: CallOptions & DryRun = {}) =>
      transport.json<ChangedConfigBody>({
        method: 'PUT',
        path: '/config',
        query: { dry_run: dryRun },
        body: change,
        signal,
      }),
    /** Newest first. */
    revisions: ({
      signal,
      ...query
    }: CallOptions & { readonly before?: number; readonly limit?: number } = {}) =>
      transport.json<RevisionPage>({ method: 'GET', path: '/config/revisions', query, signal }),
    /** Creates a new revision that equals the given one. */
    restore: (revision: number, { dryRun, signal }: CallOptions & DryRun = {}) =>
      transport.json<ChangedConfigBody>({
        method: 'POST',
        path: `/config/revisions/${pathSegment(String(revision))}/restore`,
        query: { dry_run: dryRun },
        signal,
      }),
  }
}

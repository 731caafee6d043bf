/** The key of secrets and environment variables, at the start of `headroom serve`. */
import { dirname, join } from 'node:path'
import { keyIdIn, KeyFileFault, openKeyFile } from '../../controller/adapters/key-file-sealer.ts'
import { makeDirectory } from '../../controller/adapters/sql/files.ts'
import { openedEnvironment, openedSecret } from '../../controller/model/environment-values.ts'
import type { Sealer } from '../../controller/ports/sealer.ts'
import { StoreFault, type Store, type StoredState } from '../../controller/ports/store.ts'
import { StartFault } from '../exit-codes.ts'
import type { Settings } from '../settings/settings.ts'

export interface SecretsKey {
  readonly path: string
  readonly sealer: Sealer
  /** Among several controllers, where all have the same; else null. */
  readonly id: string | null
}

/** @throws StartFault if the key file cannot be used */
export function openSecretsKey({ secretsKeyFile, dataDir, storePlace }: Settings): SecretsKey {
  const path = secretsKeyFile ?? join(dataDir, 'secrets.key')
  try {
    const id = storePlace === null ? null : madeKey(path)
    return { path, sealer: openKeyFile(path), id }
  } catch (fault) {
    throw fault instanceof KeyFileFault ? new StartFault(fault.message) : fault
  }
}

/** The other controllers need a copy of it before they lead, so that it is not made later. */
function madeKey(path: string): string {
  makeDirectory(dirname(path))
  return keyIdIn(path)
}

/** Returns the same store, which refuses to load values that this key cannot decrypt. */
export function requireKeyOf<S extends Store>(store: S, key: SecretsKey): S {
  return {
    ...store,
    load: async () => {
      const state = await store.load()
      const why = whatIsUnreadable(state, key.sealer)
      if (why !== null)
        throw new StoreFault(
          `${key.path}: ${why} encrypted with another key. Restore that key file, which is in no backup; ` +
            'or start once with --new-secrets-key: then these values are lost, and tasks that need them ' +
            'cannot start',
        )
      return state
    },
  }
}

/** Null: every value can be read. */
function whatIsUnreadable({ openTasks, secrets }: StoredState, sealer: Sealer): string | null {
  const taskCount = openTasks.filter(
    ({ environment = null, owner }) =>
      environment !== null && openedEnvironment(sealer, environment, owner) === null,
  ).length
  const secretCount = secrets.filter((secret) => openedSecret(sealer, secret) === null).length
  if (taskCount + secretCount === 0) return null
  const secretsInWords = `${secretCount} ${secretCount === 1 ? 'secret' : 'secrets'}`
  const tasksInWords = `the variables of ${taskCount} ${taskCount === 1 ? 'task' : 'tasks'}`
  return `${secretsInWords} and ${tasksInWords} were`
}

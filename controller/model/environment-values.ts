/** Values of a task's environment variables: encrypted at its submission, opened for its node only. */
import { byCodeUnits } from '../structures/order.ts'
import type { TaskEnvironment } from '../../protocol/task.ts'

export type Values = Readonly<Record<string, string>>

/** Encrypts and decrypts text for one context (port Sealer). */
interface Cipher {
  seal(text: string, context: string): string
  open(sealed: string, context: string): string | null
}

/** Both kinds by variable. A secret has the value that it had at the submission. */
export interface EnvironmentValues {
  readonly env: Values
  readonly secrets: Values
}

/**
 * @param secrets the name of the secret by variable
 * @param owner of the task: the values of another owner's task cannot be opened in its place
 */
export function sealedEnvironment(
  cipher: Cipher,
  values: EnvironmentValues,
  secrets: Values,
  owner: string | null,
): TaskEnvironment {
  return {
    names: namesOf(values.env),
    secrets,
    sealed: cipher.seal(JSON.stringify(values), contextOf(owner)),
  }
}

/** In order. */
export function namesOf(env: Values): readonly string[] {
  return Object.keys(env).sort(byCodeUnits)
}

/** Returns null if the values were sealed with another key. Values that are not kept are empty. */
export function openedEnvironment(
  cipher: Cipher | null,
  { sealed }: TaskEnvironment,
  owner: string | null,
): EnvironmentValues | null {
  if (sealed === null) return { env: {}, secrets: {} }
  const text = cipher?.open(sealed, contextOf(owner)) ?? null
  return text === null ? null : (JSON.parse(text) as EnvironmentValues)
}

/** @param owner of the secret */
export function sealedSecret(cipher: Cipher, owner: string | null, name: string, value: string): string {
  return cipher.seal(value, contextOfSecret(owner, name))
}

/** Returns null if the secret was sealed with another key. */
export function openedSecret(
  cipher: Cipher | null,
  { owner, name, sealed }: { readonly owner: string | null; readonly name: string; readonly sealed: string },
): string | null {
  return cipher?.open(sealed, contextOfSecret(owner, name)) ?? null
}

function contextOfSecret(owner: string | null, name: string): string {
  return `secret ${JSON.stringify([owner, name])}`
}

function contextOf(owner: string | null): string {
  return `environment of ${JSON.stringify(owner)}`
}

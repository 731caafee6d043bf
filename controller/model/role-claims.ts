/** Maps the claims of an identity provider to a role. Pure. */
import { RANKED_ROLES, type RankedRole } from './role.ts'

/** A value of the roles claim, or `*` for all who sign in, and the role it grants. */
export interface RoleRule {
  readonly value: string
  readonly role: RankedRole
}

export interface ClaimRules {
  /** Names the person: author of changes, owner of tasks. */
  readonly nameClaim: string
  /** Contains a text or a list of texts. */
  readonly rolesClaim: string
  readonly roles: readonly RoleRule[]
}

export type Person =
  | { readonly ok: true; readonly name: string; readonly role: RankedRole }
  /**
   * `missing`: the claim that is absent, which is a question of scopes at the provider; null: the claims are
   * present.
   */
  | { readonly ok: false; readonly why: string; readonly missing: string | null }

/**
 * The claims that the rules read, as paths. Without a rule for a specific value the roles claim is not read.
 */
export function claimsNeeded({ nameClaim, rolesClaim, roles }: ClaimRules): readonly string[] {
  return roles.some(({ value }) => value !== '*') ? [nameClaim, rolesClaim] : [nameClaim]
}

/** Same as for tokens, so that a token and a person of one name own the same tasks. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$/

/**
 * Returns the person with the highest role that applies. Dots in the name of a claim lead into objects,
 * unless a claim has that name.
 */
export function personOf(
  claims: Readonly<Record<string, unknown>>,
  { nameClaim, rolesClaim, roles }: ClaimRules,
): Person {
  const name = claimAt(claims, nameClaim)
  if (name === undefined) return { ok: false, why: `the claim ${nameClaim} is missing`, missing: nameClaim }
  if (typeof name !== 'string' || !NAME.test(name)) {
    return { ok: false, why: `the claim ${nameClaim} does not contain a valid name`, missing: null }
  }
  if (nameClaim === 'email' && claims['email_verified'] === false)
    return { ok: false, why: 'the email address is not verified by the provider', missing: null }
  const values = new Set(['*', ...textsOf(claimAt(claims, rolesClaim))])
  const role = RANKED_ROLES.findLast((each) =>
    roles.some((rule) => rule.role === each && values.has(rule.value)),
  )
  if (role === undefined && claimAt(claims, rolesClaim) === undefined)
    return {
      ok: false,
      why: `the claim ${rolesClaim} is missing, and no rule gives all users a role`,
      missing: rolesClaim,
    }
  if (role === undefined)
    return { ok: false, why: `no value of the claim ${rolesClaim} gives ${name} a role here`, missing: null }
  return { ok: true, name, role }
}

/** The value of a claim by its name or by a path of names; undefined if absent. */
export function claimAt(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let at: unknown = claims
  for (const part of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[part]
  }
  return at
}

function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : []
}

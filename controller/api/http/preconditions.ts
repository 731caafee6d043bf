/**
 * Preconditions of a change (RFC 9110, 13.1). They are honoured if there is something to compare, and refused
 * otherwise: ignoring one silently could lose another client's change.
 */
import type { Node } from '../../model/placement.ts'
import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../../model/config.ts'
import { ApiProblem, invalidField } from './errors.ts'

type Conditions = Pick<IncomingHttpHeaders, 'if-match' | 'if-none-match'>

/**
 * Checks the conditions for an existing resource with a tag. `If-Match` compares strongly, so a weak tag
 * never matches; `If-None-Match` compares weakly.
 * @throws ApiProblem precondition_failed if `If-Match` names another state, or `If-None-Match` names this one
 */
export function requireTag(
  { 'if-match': ifMatch, 'if-none-match': ifNoneMatch }: Conditions,
  current: string,
): void {
  const headers = { etag: current }
  if (ifMatch !== undefined && !isAny(ifMatch) && !tagsOf(ifMatch).includes(current)) {
    throw new ApiProblem('precondition_failed', `If-Match does not match the current state, ${current}.`, {
      headers,
    })
  }
  if (ifNoneMatch === undefined) return
  if (isAny(ifNoneMatch) || tagsOf(ifNoneMatch).some((tag) => tag.replace(/^W\//, '') === current)) {
    throw new ApiProblem('precondition_failed', `If-None-Match excludes the current state, ${current}.`, {
      headers,
    })
  }
}

/**
 * Checks the conditions for a resource without a tag: `If-None-Match: *` creates and never replaces,
 * `If-Match: *` replaces and never creates.
 * @throws ApiProblem
 */
export function requirePresence(headers: Conditions, what: string, isThere: boolean): void {
  refuseTags(headers)
  if (headers['if-none-match'] !== undefined && isThere) {
    throw new ApiProblem('precondition_failed', `If-None-Match: the ${what} already exists.`)
  }
  if (headers['if-match'] !== undefined && !isThere)
    throw new ApiProblem('precondition_failed', `If-Match: the ${what} does not exist.`)
}

/**
 * Refuses conditions for resources that support none. They exist in any case, so `If-Match: *` is accepted.
 * @throws ApiProblem invalid_request
 */
export function refuseConditions(headers: Conditions): void {
  refuseTags(headers)
  if (headers['if-none-match'] !== undefined)
    throw invalidField('/If-None-Match', 'the header If-None-Match is not supported by this route: omit it')
}

function refuseTags({ 'if-match': ifMatch, 'if-none-match': ifNoneMatch }: Conditions): void {
  const why = 'the resource has no ETag. Omit the header'
  if (ifMatch !== undefined && !isAny(ifMatch))
    throw invalidField('/If-Match', `the header If-Match cannot be used: ${why}`)
  if (ifNoneMatch !== undefined && !isAny(ifNoneMatch))
    throw invalidField('/If-None-Match', `the header If-None-Match cannot be used: ${why}`)
}

function isAny(header: string): boolean {
  return header.trim() === '*'
}

function tagsOf(header: string): readonly string[] {
  return header.split(',').map((tag) => tag.trim())
}

/**
 * Entity tags for settings: `If-Match` is honoured and never required, so that two people do not overwrite
 * each other unseen.
 */

/**
 * Revision 0 comes from the environment and may differ after a restart, so the value stands in the tag too.
 */
export function configEtag(config: Config): string {
  return config.revision === 0
    ? `"0-${config.fields.default_vram_overcommit_percent}"`
    : `"${config.revision}"`
}

/** Returns the tag of a node's settings (not of its figures): `"20-default"`. */
export function nodeConfigEtag(node: Node): string {
  return `"${node.overcommitOverride ?? 'default'}-${node.reserveOverrideMib ?? 'default'}"`
}

import { describe, expect, test } from 'vitest'
import { personOf, type ClaimRules } from '../../controller/model/role-claims.ts'

const RULES: ClaimRules = {
  nameClaim: 'email',
  rolesClaim: 'realm_access.roles',
  roles: [
    { value: 'ops', role: 'operator' },
    { value: 'all', role: 'viewer' },
    { value: 'root', role: 'admin' },
  ],
}

describe('the claims of a person', () => {
  test.each([
    [
      { email: 'a@b.c', realm_access: { roles: ['all', 'ops'] } },
      { ok: true, name: 'a@b.c', role: 'operator' },
    ],
    [
      { email: 'a@b.c', realm_access: { roles: ['root', 'all'] } },
      { ok: true, name: 'a@b.c', role: 'admin' },
    ],
    [
      { email: 'a@b.c', 'realm_access.roles': 'all' },
      { ok: true, name: 'a@b.c', role: 'viewer' },
    ],
    [{ email: 'a@b.c', realm_access: { roles: ['ALL', 3, null] } }, { ok: false }],
    [{ email: 'a@b.c', realm_access: 'all' }, { ok: false }],
    [{ email: 'a@b.c' }, { ok: false }],
    [{ email: 'a b', realm_access: { roles: ['all'] } }, { ok: false }],
    [{ email: 7, realm_access: { roles: ['all'] } }, { ok: false }],
    [{ email: 'a@b.c', email_verified: false, realm_access: { roles: ['all'] } }, { ok: false }],
    [{ realm_access: { roles: ['all'] } }, { ok: false }],
  ])('%j have the expected result', (claims, person) => {
    expect(personOf(claims, RULES)).toMatchObject(person)
  })

  test('can give all users a role, and never lead into a prototype', () => {
    const open = { ...RULES, roles: [{ value: '*', role: 'viewer' as const }] }
    expect(personOf({ email: 'x' }, open)).toEqual({ ok: true, name: 'x', role: 'viewer' })
    expect(personOf({ email: 'x' }, { ...open, nameClaim: 'constructor.name' })).toMatchObject({ ok: false })
  })
})

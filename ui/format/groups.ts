/** Texts for groups. Pure. */

/** The rule of GROUP_ID_PATTERN (controller/model/group.ts) as text. */
export const GROUP_NAME_RULE =
  '1 to 200 letters, digits, spaces, dots, dashes and underscores. The name must begin with a letter or ' +
  'digit and must not end with a space.'

/** Texts for groups. Pure. */

/** The rule of GROUP_ID_PATTERN (controller/model/group.ts) as text. */
export const GROUP_NAME_RULE =
  '1 to 200 letters, digits, inner spaces, dots, dashes and underscores. Begins with a letter or digit.'

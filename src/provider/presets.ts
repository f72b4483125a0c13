/** The profiles that ship with Keyturn, by the name that `preset` takes. */
import { github, githubApp } from './presets/github.ts';
import { google } from './presets/google.ts';
import type { ProfileInput } from './profile.ts';

export const PRESETS: Readonly<Record<string, ProfileInput>> = {
  github,
  'github-app': githubApp,
  google,
};

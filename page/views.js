// This list holds the views in the order of their tabs.
import accesses from './views/accesses.js';
import guide from './chapters/guide.js';
import ladder from './views/ladder.js';
import owners from './views/owners.js';
import plan from './views/plan.js';
import reads from './views/reads.js';
import roofline from './views/roofline.js';
import walk from './walk/walk.js';

export const views = [guide, walk, owners, roofline, reads, accesses, ladder, plan];

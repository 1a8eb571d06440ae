#include "core/lock.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static tgi_lock *open_locks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void take_all(void)
{
    pthread_mutex_lock(&list_mutex);
    for (tgi_lock *lock = open_locks; lock; lock = lock->following)
        tgi_lock_take(lock);
}

static void give_all(void)
{
    for (tgi_lock *lock = open_locks; lock; lock = lock->following)
        tgi_lock_give(lock);
    pthread_mutex_unlock(&list_mutex);
}

static void add_fork_handlers(void)
{
    pthread_atfork(take_all, give_all, give_all);
}

void tgi_lock_open(tgi_lock *lock)
{
    pthread_once(&once, add_fork_handlers);
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_mutex_lock(&list_mutex);
    lock->following = open_locks;
    open_locks = lock;
    pthread_mutex_unlock(&list_mutex);
}

void tgi_lock_close(tgi_lock *lock)
{
    pthread_mutex_lock(&list_mutex);
    tgi_lock **place = &open_locks;
    while (*place != lock)
        place = &(*place)->following;
    *place = lock->following;
    pthread_mutex_unlock(&list_mutex);
    pthread_mutex_destroy(&lock->mutex);
}
